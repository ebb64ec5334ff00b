//! yMMSL and the model graph.
