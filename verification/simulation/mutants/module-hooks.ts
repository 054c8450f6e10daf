import type { Mutant } from './mutant.ts'

/**
 * Hooks for node:module that change the text of a file as it is loaded. They run beside a process that is
 * made only to be broken; nothing on the disk is touched.
 */
let active: { bug: Mutant; base: string } | undefined

/** `base`: the URL of the folder of the build. */
export function initialize(data: { bug: Mutant; base: string }): void {
  active = data
}

interface Loaded {
  format: string
  source?: string | ArrayBuffer | NodeJS.TypedArray
  shortCircuit?: boolean
}

/** The file as it is, or with the bug in it. Throws when a change does not fit exactly once. */
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
        `the bug ${active?.bug.name} does not fit any more: its text is ${parts.length - 1} times in ${file}`,
      )
    source = parts.join(put)
  }
  return { ...loaded, source }
}
