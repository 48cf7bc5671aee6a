// Normals from a seed: the generator PCG32 (O'Neill, 2014; XSH RR, stream 0) and the transform of Box and Muller.

/** A function that returns the next standard normal. */
function normalStream(seed) {
  const multiplier = 6364136223846793005n,
    increment = 1n;
  let state = 0n,
    spare = null;
  const advance = () => {
    state = BigInt.asUintN(64, state * multiplier + increment);
  };
  advance();
  state = BigInt.asUintN(64, state + BigInt(seed));
  advance();

  function uniform() {
    const old = state;
    advance();
    const mixed = Number(BigInt.asUintN(32, ((old >> 18n) ^ old) >> 27n)),
      turn = Number(old >> 59n);
    const bits = ((mixed >>> turn) | (mixed << (-turn & 31))) >>> 0;
    return (bits + 0.5) / 4294967296;
  }

  return () => {
    if (spare !== null) {
      const value = spare;
      spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(uniform())),
      angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
