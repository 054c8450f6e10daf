import type { ChildProcess } from 'node:child_process'
import { LinkFault } from '../byte-link.ts'
import type { ByteLink } from '../byte-link.ts'

/** Starts the process that loads the package `nfc-pcsc`, with pipes for stdin, stdout and stderr. */
type StartPcscChild = () => ChildProcess

/**
 * The process writes this line to stderr when the package works. Any other line that it writes there is an error
 * message.
 */
export const READY = 'ready'

const MAX_UNSENT_BYTES = 65_536
const MAX_STDERR_CHARS = 2_000

/** The last error message in this text. */
function lastExplanation(text: string): string | undefined {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.findLast((line) => line !== '' && line !== READY)
}

/**
 * Starts the package `nfc-pcsc` in its own process: a crash or a blocking call must not stop the agent. Resolves with the link
 * when the package works; otherwise rejects with a `LinkFault`. Closing the link kills the process.
 */
export async function openPcscChild(start: StartPcscChild, signal: AbortSignal): Promise<ByteLink> {
  if (signal.aborted) throw signal.reason as Error
  const child = start()
  const { stdin, stdout, stderr } = child
  if (!stdin || !stdout || !stderr) throw new TypeError('the process has no pipes')
  let stderrText = ''
  let closed = false
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`the process for smart cards cannot be started (${error.message})`))
    // `close` is emitted after stderr has ended, so the text is complete.
    child.once('close', (code, killedBy) =>
      resolve(lastExplanation(stderrText) ?? `the process for smart cards ended (${killedBy ?? `exit code ${code}`})`),
    )
  })
  const kill = (): Promise<void> => {
    closed = true
    child.kill('SIGKILL')
    return exited.then(() => {})
  }
  stderr.on('error', () => {})
  // Ignores these errors: when the process ends, `bytes` throws the fault.
  stdin.on('error', () => {})
  stdout.on('error', () => {})

  const ready = new Promise<void>((resolve) => {
    stderr.setEncoding('utf8').on('data', (text: string) => {
      stderrText = (stderrText + text).slice(-MAX_STDERR_CHARS)
      if (stderrText.split('\n').includes(READY)) resolve()
    })
  })
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  const outcome = await Promise.race([ready.then(() => true), exited, aborted.then(() => false)])
  if (typeof outcome === 'string') throw new LinkFault('missing', outcome)
  if (!outcome) {
    void kill()
    throw new LinkFault('unreachable', 'the smart-card service does not answer; is it running?', {
      cause: signal.reason,
    })
  }

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of stdout?.iterator({ destroyOnReturn: false }) ?? [])
        if (!closed) yield chunk as Uint8Array
    } catch {
      // Ignores the error, because `exited` will resolve with the reason.
    }
    const reason = await exited
    if (!closed) throw new LinkFault('lost', reason)
  }

  return {
    bytes: { [Symbol.asyncIterator]: read },
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (closed || stdin.destroyed || !stdin.writable)
          return reject(new LinkFault('lost', 'the process for smart cards has ended'))
        if (stdin.writableLength > MAX_UNSENT_BYTES)
          return reject(new LinkFault('lost', 'the process for smart cards reads nothing'))
        stdin.write(bytes, (error) =>
          error ? reject(new LinkFault('lost', 'the process for smart cards has ended', { cause: error })) : resolve(),
        )
      }),
    close: kill,
  }
}
