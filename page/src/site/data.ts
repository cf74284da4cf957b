/**
 * What `heed site` wrote beside the page: one script for each part, called when it is first needed. Scripts load
 * from a disk too, where browsers refuse to fetch files.
 */

declare global {
  var heedful: (name: string, content: unknown) => void
}

const waiting = new Map<string, (content: any) => void>()
const known = new Map<string, Promise<any>>()
globalThis.heedful = (name, content) => waiting.get(name)?.(content)

/** Load a script of the folder, once. */
export function script(path: string): Promise<void> {
  return new Promise((done, fail) => {
    const element = document.createElement('script')
    element.src = path
    element.onload = () => done()
    element.onerror = () => fail(new Error(`${path} of this site could not be loaded. Was the whole folder copied?`))
    document.head.append(element)
  })
}

export function load<T>(name: string): Promise<T> {
  let found = known.get(name)
  if (!found) {
    found = new Promise<T>((done, fail) => {
      waiting.set(name, done)
      script(`./data/${name}.js`).catch(fail)
    })
    known.set(name, found)
  }
  return found
}

/** Whether the page was opened from a disk: browsers then let it fetch nothing. */
export const onDisk = location.protocol === 'file:'
