import type { Mutant } from './mutant.ts'

/** Hooks for node:module that apply a mutant while a file is loaded. The files on disk stay unchanged. */
let active: { bug: Mutant; base: string } | undefined

/** Receives the mutant. `base`: URL of the build folder. */
export function initialize(data: { bug: Mutant; base: string }): void {
  active = data
}

interface Loaded {
  format: string
  source?: string | ArrayBuffer | NodeJS.TypedArray
  shortCircuit?: boolean
}

/** Loads a file and applies the changes of the mutant. Throws if a text to replace does not occur exactly once. */
export async function load(
  url: string,
  context: object,
  nextLoad: (url: string, context: object) => Promise<Loaded>,
): Promise<Loaded> {
  const loaded = await nextLoad(url, context)
  const changes = active?.bug.changes.filter((change) => url === active?.base + change.file) ?? []
  if (changes.length === 0 || loaded.source === undefined) return loaded
  let source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
  for (const { file, find, put } of changes) {
    const parts = source.split(find)
    if (parts.length !== 2)
      throw new Error(
        `the mutant ${active?.bug.name} does not fit any more: ${file} has its text ${parts.length - 1} times`,
      )
    source = parts.join(put)
  }
  return { ...loaded, source }
}
