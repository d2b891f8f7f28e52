/// Returns the first output of splitmix64 seeded with `seed`, identical on every platform; a seed
/// of 0 gives e220a8397b1dcdaf.
@inlinable package func splitmix64(_ seed: UInt64) -> UInt64 {
    var z = seed &+ 0x9e37_79b9_7f4a_7c15
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
}
