/** Files of the reader: opened as text, never sent anywhere but to the server of this page. */

export const LARGEST_SHEET = 65_536

export interface OpenedFile {
  name: string
  text: string
}

/** Let somebody choose a file; the text in it, or an error that says what is wrong. */
export async function openedFile(input: HTMLInputElement, largest = LARGEST_SHEET): Promise<OpenedFile | null> {
  const file = input.files?.[0]
  input.value = '' // so that the same file can be opened again
  if (!file) return null
  if (file.size > largest) throw new Error(`${file.name} has ${file.size.toLocaleString('en')} bytes; at most ${largest.toLocaleString('en')} are read.`)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    return { name: file.name, text: text.replaceAll('\r\n', '\n') }
  } catch {
    throw new Error(`${file.name} is not UTF-8; save it as UTF-8.`)
  }
}

/** Whether a text is an assignment, rather than a sheet of claims. */
export function isAssignment(text: string): boolean {
  return /^\s*\[\[\s*question\s*\]\]/m.test(text)
}

/** A name for a file, made of a title. */
export function fileName(title: string, otherwise: string): string {
  const plain = title.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '-').replaceAll(/^-+|-+$/g, '').slice(0, 60)
  return plain || otherwise
}
