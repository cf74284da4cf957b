/** Standard keys, the plane in which they are drawn, and which of them can be copied. */

import type { Scene } from '../lib/attention.svelte'
import type { Point } from '../lib/mathematics'
import { dot, eye, norm, plus, scaled, svd, times, transposed, zeros, type Rows, type Vector } from './linear'
import { Generator } from './random'
import { separate } from './design'

export interface SceneQuestion {
  kind: string
  rows?: Rows | null
  n?: number
  d?: number
  seed?: number
  values: 'keys' | 'circle'
  plane: 'auto' | 'round' | 'principal' | 'keys'
  through?: number[]
}

const circle = (n: number, d = 2): Rows =>
  Array.from({ length: n }, (_, i) => {
    const row = zeros(d)
    row[0] = Math.cos((2 * Math.PI * i) / n)
    row[1] = Math.sin((2 * Math.PI * i) / n)
    return row
  })

/** Every standard set by its name; `about` says which there are, and a test that none is missing here. */
export const SETS: Record<string, (n: number, d: number, seed: number) => Rows> = {
  orthonormal: (n, d) => eye(n, d),
  gaussian: (n, d, seed) => new Generator(seed).normals(n, d),
  sphere: (n, d, seed) => new Generator(seed).normals(n, d).map((row) => scaled(row, 1 / norm(row))),
  grid(n, d) {
    let side = 1
    while (side ** d < n) side++
    return Array.from({ length: n }, (_, i) => Array.from({ length: d }, (_, j) => (Math.floor(i / side ** (d - 1 - j)) % side) - (side - 1) / 2))
  },
  simplex(n, d) {
    // Each corner lies on a new axis and as far below 0 on all later ones as keeps the mean at 0.
    return Array.from({ length: n }, (_, i) => {
      const row = zeros(d)
      for (let k = 0; k < n - 1; k++) {
        const size = Math.sqrt((n * (n - 1 - k)) / ((n - 1) * (n - k)))
        row[k] = i === k ? size : i > k ? -size / (n - 1 - k) : 0
      }
      return row
    })
  },
  circle: (n, d) => circle(n, d),
}

/** Perpendicular unit rows that span the same plane, the first one kept. */
function orthonormal(rows: Rows): Rows {
  const first = norm(rows[0]) > 0 ? scaled(rows[0], 1 / norm(rows[0])) : eye(1, rows[0].length)[0]
  let second = plus(rows[1], first, -dot(rows[1], first))
  if (norm(second) <= 1e-9 * Math.max(norm(rows[1]), 1)) {
    let least = 0
    first.forEach((entry, j) => { if (Math.abs(entry) < Math.abs(first[least])) least = j })
    const away = eye(first.length)[least]
    second = plus(away, first, -dot(away, first))
  }
  return [first, scaled(second, 1 / norm(second))]
}

function planeOf(keys: Rows, kind: SceneQuestion['plane'], through: number[]): Rows {
  const [n, d] = [keys.length, keys[0].length]
  if (d <= 2) return eye(2, d)
  if (kind === 'keys') return orthonormal(through.map((i) => keys[i]))
  const round = (): Rows => orthonormal(transposed(circle(n)).map((shares) => keys.reduce((sum, row, i) => plus(sum, row, shares[i]), zeros(d))))
  if (kind === 'round') return round()
  const mean = scaled(keys.reduce((sum, row) => plus(sum, row), zeros(d)), 1 / n)
  const { singular, right } = svd(keys.map((row) => plus(row, mean, -1)))
  // Where the keys differ as much in a third direction, no two directions are the principal ones.
  if (kind === 'auto' && (singular[2] ?? 0) > 0.999 * singular[0]) return round()
  return orthonormal([right[0], right[1] ?? zeros(d)])
}

/** Keys with their values, the plane, and which keys can be copied at all. */
export function scene(question: SceneQuestion): Scene {
  const keys = question.rows ?? SETS[question.kind](question.n!, question.d!, question.seed ?? 0)
  const plane = planeOf(keys, question.plane, question.through ?? [])
  const drawn = keys.map((key) => times(plane, key))
  const total = keys.reduce((sum, key) => sum + dot(key, key), 0)
  return {
    keys,
    values: (question.values === 'circle' ? circle(keys.length) : drawn) as Point[],
    plane,
    shown: total ? drawn.reduce((sum, point) => sum + dot(point, point), 0) / total : 1,
    copyable: copyable(keys),
  }
}

/** A key can be copied when it lies outside the hull of the others. */
export function copyable(keys: Rows): boolean[] {
  const centred = aroundMean(keys)
  return centred.map((key, i) => separate(centred.filter((_, j) => j !== i).map((other) => plus(other, key, -1)), key.length).verdict === 'outside')
}

function aroundMean(keys: Rows): Rows {
  const mean: Vector = scaled(keys.reduce((sum, row) => plus(sum, row), zeros(keys[0].length)), 1 / keys.length)
  return keys.map((row) => plus(row, mean, -1))
}
