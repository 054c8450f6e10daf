/** One event on a link. */
export interface TraceRecord {
  /** ms since the trace began, on a monotonic clock. */
  readonly atMs: number
  /** `open` and `close` of the link, bytes `in` from the device, bytes `out` to it. */
  readonly kind: 'open' | 'close' | 'in' | 'out'
  readonly bytes: Uint8Array
}

const SIGNS = { open: '+', close: '-', in: '<', out: '>' } as const
const KINDS = new Map(Object.entries(SIGNS).map(([kind, sign]) => [sign as string, kind as TraceRecord['kind']]))
const NOTHING = new Uint8Array(0)

/** Formats a line of a trace: `12.345 < aGVsbG8=`. */
export function traceLine({ atMs, kind, bytes }: TraceRecord): string {
  return `${atMs.toFixed(3)} ${SIGNS[kind]} ${Buffer.from(bytes).toString('base64')}`.trimEnd()
}

/** Parses a trace. Skips invalid lines, such as a last line that a crash made incomplete. */
export function readTrace(text: string): TraceRecord[] {
  const records: TraceRecord[] = []
  for (const line of text.split('\n')) {
    const parts = /^(\d{1,12}(?:\.\d{1,6})?) ([-+<>])(?: ([A-Za-z0-9+/]+={0,2}))?$/.exec(line.trim())
    const kind = KINDS.get(parts?.[2] ?? '')
    if (parts && kind)
      records.push({
        atMs: Number(parts[1]),
        kind,
        bytes: parts[3] === undefined ? NOTHING : Uint8Array.from(Buffer.from(parts[3], 'base64')),
      })
  }
  return records
}
