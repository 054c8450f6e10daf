import { appendFileSync, existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WriteTrace } from '../device-drivers/transports/traced-link.ts'

/**
 * Maximum size of a trace file, bytes. Each link has at most two trace files: the current file and the previous file.
 */
const MOST_FILE_BYTES = 4 * 1_048_576
const FLUSH_MS = 200
const MOST_HELD_BYTES = 1_048_576

/** The file of a link, such as `tcp_10.0.0.7_502.trace`. */
export function traceFile(dir: string, link: string): string {
  return join(dir, `${link.replaceAll(/[^A-Za-z0-9.-]+/g, '_').slice(0, 120)}.trace`)
}

/**
 * Writes traces to `dir`. Only the owner may read them, because they contain passwords of devices. A write error ends
 * only the trace.
 */
export function traceFiles(dir: string, onFault: (error: Error) => void): { write: WriteTrace; flush(): void } {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const held = new Map<string, string>()
  let timer: NodeJS.Timeout | undefined
  let isBroken = false

  function put(link: string, text: string): void {
    const file = traceFile(dir, link)
    if (existsSync(file) && statSync(file).size + text.length > MOST_FILE_BYTES)
      renameSync(file, file.replace(/\.trace$/, '.1.trace'))
    appendFileSync(file, text, { mode: 0o600 })
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    try {
      for (const [link, text] of held) put(link, text)
    } catch (error) {
      isBroken = true
      onFault(error as Error)
    }
    held.clear()
  }

  return {
    flush,
    write(link, line) {
      if (isBroken) return
      const text = `${held.get(link) ?? ''}${line}\n`
      held.set(link, text)
      if (text.length > MOST_HELD_BYTES) return flush()
      timer ??= setTimeout(flush, FLUSH_MS)
    },
  }
}
