/** Destination of the log: standard error, or a stream of a test. */
export interface LogStream {
  /** Bytes that wait for the reader. */
  readonly writableLength: number
  write(text: string, done: (error?: Error | null) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Writes log lines to a stream and never waits for its reader. */
export interface LogOutput {
  write(line: string): void
  /** Number of dropped lines since the start. */
  readonly lost: number
}

/** Maximum bytes that wait for a slow reader: some thousand lines. */
const WAITING_LIMIT = 1_048_576

/**
 * Drops and counts lines while the stream is full or broken. Calls `onWritable` with the count when the stream accepts
 * lines again.
 */
export function logOutput(stream: LogStream, onWritable: (lost: number) => void): LogOutput {
  let lost = 0
  let reported = 0
  // Without a listener, the error of a closed stream would end the process.
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

/** Makes writes to a terminal non-blocking, because a stopped terminal (Ctrl-S) would block the process. */
export function neverBlock(stream: NodeJS.WriteStream): void {
  const { _handle: handle } = stream as { _handle?: { setBlocking?: (isBlocking: boolean) => void } }
  if (stream.isTTY) handle?.setBlocking?.(false)
}
