/** The questions of the views, answered in the browser: what `heed serve` answers on your own machine. */

import { Refusal } from '../lib/api'
import type { DesignAnswer } from '../lib/attention.svelte'
import { load } from './data'
import { designQuery } from './design'
import { noise, scaleOf, type NoiseQuestion } from './noise'
import { order, study } from './positions'
import { designHeads } from './robust'
import { scene } from './scene'

interface DesignQuestion extends Omit<NoiseQuestion, 'layers' | 'radius'> {
  kind: 'copy' | 'average' | 'robust'
  tolerance: number
  heads: number
  norm: number
}

function design(question: DesignQuestion): DesignAnswer {
  const scale = scaleOf(question.scale, question.keys[0].length)
  if (question.kind === 'robust') return designHeads({ ...question, scale }, question.of, question.heads, question.norm)
  return { kind: question.kind, design: designQuery(question.keys, question.of, question.tolerance, scale) }
}

/** By the path that the page asks. */
const ANSWERS: Record<string, (question: any) => unknown> = {
  about: () => load('about'),
  'attention/scene': scene,
  'attention/noise': (question: NoiseQuestion) => noise(question),
  'attention/design': design,
  'positions/study': study,
  'positions/order': order,
}

export async function answer(path: string, question: any): Promise<unknown> {
  const found = ANSWERS[path]
  if (!found) throw new Refusal('This needs the laboratory on your own machine: heed serve.', 404)
  await new Promise((done) => setTimeout(done)) // let the page draw that it is searching
  return found(question)
}
