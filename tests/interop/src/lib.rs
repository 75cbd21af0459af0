//! Real peers: how they are found, installed and started.
