/**
 * The random numbers of NumPy's `default_rng(seed)`: PCG64 and the ziggurat, number for number, so that
 * a seed means the same keys and words on a site as in the laboratory.
 */

const U32 = 0xffffffff

function words(seed: readonly number[]): Uint32Array {
  let constant = 0x43b0d7e5
  const hashed = (value: number): number => {
    let mixed = value ^ constant
    constant = Math.imul(constant, 0x931e8875)
    mixed = Math.imul(mixed, constant)
    return (mixed ^ (mixed >>> 16)) >>> 0
  }
  const mix = (x: number, y: number): number => {
    const mixed = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) | 0
    return (mixed ^ (mixed >>> 16)) >>> 0
  }
  const pool = Array.from({ length: 4 }, (_, i) => hashed(i < seed.length ? seed[i] : 0))
  for (let from = 0; from < 4; from++) for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mix(pool[to], hashed(pool[from]))
  for (let from = 4; from < seed.length; from++) for (let to = 0; to < 4; to++) pool[to] = mix(pool[to], hashed(seed[from]))
  let other = 0x8b51f9dd
  return Uint32Array.from({ length: 8 }, (_, i) => {
    let value = pool[i % 4] ^ other
    other = Math.imul(other, 0x58f38ded)
    value = Math.imul(value, other)
    return (value ^ (value >>> 16)) >>> 0
  })
}

const EDGE = 3.6541528853610087963519472518
const AREA = 0.004928673233974655

/** The layers of the ziggurat: where each ends, and what NumPy keeps of it. */
const layers = ((): { inside: Float64Array; width: Float64Array; height: Float64Array } => {
  const inside = new Float64Array(256)
  const width = new Float64Array(256)
  const height = new Float64Array(256)
  const m = 2 ** 52
  const density = (x: number): number => Math.exp(-0.5 * x * x)
  inside[0] = Math.floor((EDGE * density(EDGE) * m) / AREA)
  width[0] = AREA / density(EDGE) / m
  height[0] = 1
  width[255] = EDGE / m
  height[255] = density(EDGE)
  let x = EDGE
  for (let i = 254; i >= 1; i--) {
    const next = Math.sqrt(-2 * Math.log(AREA / x + density(x)))
    inside[i + 1] = Math.floor((next / x) * m)
    width[i] = next / m
    height[i] = density(next)
    x = next
  }
  return { inside, width, height }
})()

const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n
const MASK128 = (1n << 128n) - 1n
const MASK64 = (1n << 64n) - 1n

export class Generator {
  #state: bigint
  #increment: bigint

  /** Whole numbers from 0 to 2³² − 1: a seed, or several. */
  constructor(...seed: number[]) {
    const found = words(seed.map((one) => (one & U32) >>> 0))
    const long = (i: number): bigint => BigInt(found[2 * i]) | (BigInt(found[2 * i + 1]) << 32n)
    this.#increment = ((((long(2) << 64n) | long(3)) << 1n) | 1n) & MASK128
    this.#state = (this.#increment + ((long(0) << 64n) | long(1))) & MASK128
    this.#step()
  }

  #step(): void {
    this.#state = (this.#state * MULTIPLIER + this.#increment) & MASK128
  }

  #next(): bigint {
    this.#step()
    const turned = this.#state >> 122n
    const value = ((this.#state >> 64n) ^ this.#state) & MASK64
    return ((value >> turned) | (value << (64n - turned))) & MASK64
  }

  /** From 0 to 1. */
  uniform(): number {
    return Number(this.#next() >> 11n) / 2 ** 53
  }

  normal(): number {
    for (;;) {
      const drawn = this.#next()
      const layer = Number(drawn & 0xffn)
      const size = Number((drawn >> 9n) & 0xfffffffffffffn)
      const x = (drawn >> 8n) & 1n ? -size * layers.width[layer] : size * layers.width[layer]
      if (size < layers.inside[layer]) return x
      if (layer > 0) {
        const { height } = layers
        if ((height[layer - 1] - height[layer]) * this.uniform() + height[layer] < Math.exp(-0.5 * x * x)) return x
        continue
      }
      for (;;) {
        const far = -Math.log1p(-this.uniform()) / EDGE
        const high = -Math.log1p(-this.uniform())
        if (2 * high > far * far) return (drawn >> 17n) & 1n ? -(EDGE + far) : EDGE + far
      }
    }
  }

  normals(rows: number, columns: number): number[][] {
    return Array.from({ length: rows }, () => Array.from({ length: columns }, () => this.normal()))
  }
}

/** The CRC-32 of a text in UTF-8, as zlib has it. */
export function crc32(text: string): number {
  let crc = U32
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ U32) >>> 0
}
