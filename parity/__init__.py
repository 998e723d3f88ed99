"""The proof: our side and OpenSpiel's in lockstep."""
