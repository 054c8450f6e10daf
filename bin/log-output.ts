/** A stream that the log is written to: standard error, or a test's. */
export interface LogStream {
  /** Bytes that the stream holds until somebody reads them. */
  readonly writableLength: number
  write(text: string, done: (error?: Error | null) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Writes log lines to a stream and never waits for its reader. */
export interface LogOutput {
  write(line: string): void
  /** Lines that were dropped since the start. */
  readonly lost: number
}

/** Bytes that wait for a slow reader at most: some thousand lines. */
const WAITING_LIMIT = 1_048_576

/**
 * Drops lines while the stream is full or broken, and counts them. `onWritable` is called with that number once the stream
 * takes lines again.
 */
export function logOutput(stream: LogStream, onWritable: (lost: number) => void): LogOutput {
  let lost = 0
  let reported = 0
  // A reader that has died is an error of the stream, which would end the process without a listener.
  stream.on('error', () => undefined)

  function written(error?: Error | null): void {
    if (error) {
      lost++
      return
    }
    if (lost === reported) return
    reported = lost
    onWritable(lost)
  }

  return {
    write(line) {
      if (stream.writableLength + line.length > WAITING_LIMIT) lost++
      else stream.write(line, written)
    },
    get lost() {
      return lost
    },
  }
}

/** Has a terminal take what it can, as a pipe does: one that is stopped (Ctrl-S) would stop the whole process. */
export function neverBlock(stream: NodeJS.WriteStream): void {
  const { _handle: handle } = stream as { _handle?: { setBlocking?: (isBlocking: boolean) => void } }
  if (stream.isTTY) handle?.setBlocking?.(false)
}
