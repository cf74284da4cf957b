/** An assignment that is worked on: its questions, the answers as they are typed, what is said of them. */

import { ask, latest } from './api'
import { fileName, type OpenedFile } from './files'
import { saveText } from './save'

export type Open = 'query' | 'heads' | 'number' | 'matrix' | 'matrices' | 'choice' | 'statement' | 'condition' | 'verdict' | 'text'

export interface QuestionText {
  id: string
  text: string
  points: number
  open: Open
  asks: string
  options: string[]
  names: string[]
  count: number
}

export interface AssignmentText {
  title: string
  text: string
  points: number
  live: string
  shows: string
  questions: QuestionText[]
}

export interface Graded {
  reading: string
  latex: string
  problems: { written: string; problem: string }[]
  notes: string[]
  word: string
  tone: string
  lines: string[]
  points?: number
  of?: number
}

/** What was typed into the fields of one question, by their names. */
export type Fields = Record<string, string>

const WORKING = 'working'
const MARK = '**Answer:**'
const DRAFT = 'heedful-assignment'

/** The names of a question's formulas. */
export function namesOf(question: QuestionText): string[] {
  switch (question.open) {
    case 'query':
      return ['q']
    case 'heads':
      return Array.from({ length: question.count }, (_, i) => `q_${i + 1}`)
    case 'matrices':
      return question.names
    case 'choice':
    case 'verdict':
      return []
    case 'text':
      return []
    default:
      return ['answer']
  }
}

/** An answer as a submission holds it: the working, then the formulas, of which the last count. */
export function answerText(question: QuestionText, fields: Fields): string {
  const formulas = namesOf(question).map((name) => formulaText(question, name, (fields[name] ?? '').trim())).filter(Boolean)
  const chosen = (fields.choice ?? '').trim()
  const working = (fields[WORKING] ?? '').trim()
  const last = question.open === 'choice' || question.open === 'verdict' ? chosen : formulas.join('\n\n')
  if (!last) return working
  return working ? `${working}\n\n${MARK}\n\n${last}` : `${MARK}\n\n${last}`
}

function formulaText(question: QuestionText, name: string, text: string): string {
  if (!text) return ''
  const latex = text.includes('\\') || text.includes('`') || text.includes('\n')
  const plain = name.replace('_', '_?\\{?') // q_1, q_{1}
  const named = new RegExp(`^(?:\\\\mathrm\\{)?${plain}\\}?\\s*(?:&\\s*)?(?:=|≈|\\\\approx)`).test(text)
  const whole = named || question.open === 'statement' || question.open === 'condition' || (name === 'answer' && /[=≈]|\\approx/.test(text))
  if (latex) return `$$${whole ? '' : `${name === 'answer' ? '\\mathrm{answer}' : name} = `}${text}$$`
  return `\`${whole ? '' : `${name} = `}${text}\``
}

/** The fields of an answer that was saved; what was written otherwise is working. */
export function fieldsOf(question: QuestionText, text: string): Fields {
  const at = text.lastIndexOf(MARK)
  const names = namesOf(question)
  if (question.open === 'choice' || question.open === 'verdict') return { choice: text.slice(at < 0 ? 0 : at + MARK.length).trim() }
  const found = at < 0 ? [] : [...text.slice(at + MARK.length).matchAll(/\$\$([\s\S]*?)\$\$|`([^`\n]*)`/g)].map((one) => one[1] ?? one[2])
  if (at < 0 || !found.length || found.length > names.length) return { [WORKING]: text.replace(MARK, '').trim() }
  const fields: Fields = { [WORKING]: text.slice(0, at).trim() }
  found.forEach((formula, i) => {
    const own = names.find((name) => formula.startsWith(`${name} = `)) ?? (formula.startsWith('\\mathrm{answer} = ') ? 'answer' : names[i])
    fields[own] = formula.replace(/^(?:\\mathrm\{answer\}|answer) = /, '').replace(new RegExp(`^${own} = `), '')
  })
  return fields
}

export function submissionText(assignment: AssignmentText, answers: Record<string, Fields>): string {
  const parts = assignment.questions
    .map((question) => [question.id, answerText(question, answers[question.id] ?? {})] as const)
    .filter(([, text]) => text)
    .map(([id, text]) => `## ${id}\n\n${text}\n`)
  return [`# ${assignment.title}\n`, ...parts].join('\n')
}

export class AssignmentState {
  /** The text of the assignment's file, and its name. */
  source = $state('')
  name = $state('')
  about = $state.raw<AssignmentText | null>(null)
  answers = $state<Record<string, Fields>>({})
  graded = $state.raw<Record<string, Graded>>({})
  busy = $state<Record<string, boolean>>({})
  trouble = $state('')
  notes = $state.raw<string[]>([])

  #asking = new Map<string, ReturnType<typeof latest<object, Graded>>>()

  answered = $derived(this.about?.questions.filter((one) => answerText(one, this.answers[one.id] ?? {})).length ?? 0)
  earned = $derived(Object.values(this.graded).reduce((sum, one) => sum + (one.points ?? 0), 0))
  rated = $derived(Object.values(this.graded).reduce((sum, one) => sum + (one.of ?? 0), 0))

  constructor() {
    const draft = kept()
    if (draft) void this.open({ name: draft.name, text: draft.source }, draft.answers)
  }

  /** Take the assignment that comes with the laboratory. */
  async ready(): Promise<void> {
    await this.#try(async () => {
      const { text } = await ask<{ text: string }>('assignments/ready')
      await this.open({ name: 'attention.toml', text })
    })
  }

  async open(file: OpenedFile, answers: Record<string, Fields> = {}): Promise<void> {
    await this.#try(async () => {
      const about = await ask<AssignmentText>('assignments/read', { assignment: file.text })
      this.close()
      this.source = file.text
      this.name = file.name
      this.answers = answers
      this.graded = {}
      this.notes = []
      this.about = about
      for (const question of about.questions) if (answers[question.id]) this.judge(question)
    })
  }

  /** Put an assignment away, with the answers to it. */
  leave(): void {
    this.close()
    this.about = null
    this.source = ''
    this.answers = {}
    this.graded = {}
    this.keep()
  }

  type(question: QuestionText, name: string, text: string): void {
    this.answers[question.id] = { ...this.answers[question.id], [name]: text }
    this.keep()
    this.judge(question)
  }

  judge(question: QuestionText): void {
    const text = answerText(question, this.answers[question.id] ?? {})
    let asking = this.#asking.get(question.id)
    if (!asking) {
      asking = latest<object, Graded>(
        'assignments/answer', 500,
        (found) => {
          this.graded = { ...this.graded, [question.id]: found }
          this.busy[question.id] = false
        },
        (message) => {
          this.trouble = message
          this.busy[question.id] = false
        },
      )
      this.#asking.set(question.id, asking)
    }
    if (!text) {
      asking.stop()
      const { [question.id]: _, ...rest } = this.graded
      this.graded = rest
      this.busy[question.id] = false
      return
    }
    this.busy[question.id] = true
    asking.ask({ assignment: this.source, question: question.id, text })
  }

  /** Save the answers as a file that `heed assignment grade` takes; say if they would be read otherwise. */
  async save(): Promise<void> {
    const about = this.about
    if (!about) return
    const text = submissionText(about, this.answers)
    const name = `${fileName(about.title, 'answers')}-answers.md`
    saveText(text, name)
    await this.#try(async () => {
      const found = await ask<{ answers: Record<string, string>; notes: string[] }>('assignments/submission', { assignment: this.source, name, text })
      const other = about.questions.filter((one) => (found.answers[one.id] ?? '').trim() !== answerText(one, this.answers[one.id] ?? {}).trim())
      this.notes = [...found.notes, ...other.map((one) => `${one.id}: a line of your working looks like the label of a question, so the answer is cut there`)]
    })
  }

  /** Open answers that were saved. */
  async resume(file: OpenedFile): Promise<void> {
    const about = this.about
    if (!about) return
    await this.#try(async () => {
      const found = await ask<{ answers: Record<string, string>; notes: string[] }>('assignments/submission', { assignment: this.source, name: file.name, text: file.text })
      this.answers = Object.fromEntries(about.questions.filter((one) => found.answers[one.id]).map((one) => [one.id, fieldsOf(one, found.answers[one.id])]))
      this.graded = {}
      this.notes = found.notes
      this.keep()
      about.questions.forEach((question) => this.judge(question))
    })
  }

  close(): void {
    for (const asking of this.#asking.values()) asking.stop()
    this.#asking.clear()
    this.busy = {}
  }

  /** Answers survive a reload: they stay in this browser until the assignment is put away. */
  keep(): void {
    try {
      if (this.about) localStorage.setItem(DRAFT, JSON.stringify({ name: this.name, source: this.source, answers: this.answers }))
      else localStorage.removeItem(DRAFT)
    } catch {
      // A browser that keeps nothing: the file that is saved is what counts.
    }
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      this.trouble = ''
      await work()
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error)
    }
  }
}

function kept(): { name: string; source: string; answers: Record<string, Fields> } | null {
  try {
    const found = JSON.parse(localStorage.getItem(DRAFT) ?? 'null')
    return found && typeof found.source === 'string' && typeof found.answers === 'object' ? found : null
  } catch {
    return null
  }
}
