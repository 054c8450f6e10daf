import { readFileSync } from 'node:fs'

/** One successful system call from a strace log (`-ttt -yy -xx`). */
export interface Syscall {
  /** Time of the effect, seconds since 1970 with microseconds: see `readSyscalls`. */
  at: number
  name: string
  /** Path or socket of the first argument, if that is a descriptor. */
  on: string | undefined
  /** Text arguments in order: paths or written data. */
  texts: Buffer[]
  /** The arguments as strace prints them, without the texts. */
  plain: string
  /** Return value. Calls with a negative return value are left out. */
  result: number
}

const LINE = /^(\d+)\s+(\d+\.\d+) (.*)$/s
const UNFINISHED = ' <unfinished ...>'
const RESUMED = /^<\.\.\. \w+ resumed>(.*)$/s

/**
 * Reads the calls of a log in the order of their effects. A write to a file, or its flush, takes effect when the call
 * ends. An output takes effect when the call starts, because the receiver may already have the output.
 */
export function readSyscalls(log: string): Syscall[] {
  const calls: Syscall[] = []
  const begun = new Map<string, { at: number; text: string; place: number }>()
  for (const line of linesOf(readFileSync(log))) {
    const [, thread = '', at = '', text = ''] = LINE.exec(line) ?? []
    if (thread === '') continue
    if (text.endsWith(UNFINISHED)) {
      const place = isOutput(text)
        ? calls.push({ at: Number(at), name: '', on: undefined, texts: [], plain: '', result: -1 }) - 1
        : -1
      begun.set(thread, { at: Number(at), text: text.slice(0, -UNFINISHED.length), place })
      continue
    }
    const rest = RESUMED.exec(text)?.[1]
    const start = rest === undefined ? undefined : begun.get(thread)
    if (rest !== undefined && !start) continue
    begun.delete(thread)
    const output = start && start.place >= 0 ? start : undefined
    const call = parseCall(start ? start.text + rest : text, output?.at ?? Number(at))
    if (!call) continue
    if (output) calls[output.place] = call
    else calls.push(call)
  }
  return calls.filter((call) => call.result >= 0)
}

/** Yields the lines; the whole file may be too long for one string. */
function* linesOf(bytes: Buffer): Generator<string> {
  for (let from = 0; from < bytes.length;) {
    const to = bytes.indexOf(10, from)
    const end = to < 0 ? bytes.length : to
    yield bytes.toString('latin1', from, end)
    from = end + 1
  }
}

const isOutput = (text: string) => /^(?:write|writev|sendto|sendmsg)\(\d+<(?!\/|\\x2f)/.test(text)
const CALL = /^(\w+)\((.*)\) += (-?\d+)/s
const FIRST_DESCRIPTOR = /^\d+<(.*?)>(?=,|$)/s

function parseCall(text: string, at: number): Syscall | undefined {
  const [, name = '', args = '', result = '-1'] = CALL.exec(text) ?? []
  if (name === '') return undefined
  const texts: Buffer[] = []
  // Strace writes data in hex, so texts contain no quotation marks. In the split line, every second piece is therefore
  // a text.
  const pieces = args.split('"')
  for (let i = 1; i < pieces.length; i += 2) texts.push(Buffer.from((pieces[i] ?? '').replaceAll('\\x', ''), 'hex'))
  const plain = pieces.filter((_, i) => i % 2 === 0).join('"')
  const behind = FIRST_DESCRIPTOR.exec(plain)?.[1]
  const on = behind?.replaceAll(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return { at, name, on, texts, plain, result: Number(result) }
}
