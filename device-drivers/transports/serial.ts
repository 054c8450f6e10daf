import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import type { SerialPort } from 'serialport'
import { LinkFault, type ByteLink } from './byte-link.ts'
import { read } from 'node:fs'
import { promisify } from 'node:util'

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
function endOnHangup(serial: SerialPort): void {
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

const MAX_PROCESSES = 4_096
const MAX_FILES = 1_024

async function hasOpen(pid: string, device: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  const files = await readdir(folder).catch(() => [])
  for (const file of files.slice(0, MAX_FILES)) {
    if ((await readlink(`${folder}/${file}`).catch(() => '')) === device) return true
  }
  return false
}

/**
 * Finds another program that uses a port. Returns `name (process id)`. Null on systems without /proc, or if another
 * user runs the program.
 */
async function portOwner(path: string): Promise<string | null> {
  const device = await realpath(path).catch(() => path)
  const processes = (await readdir('/proc').catch(() => [])).filter(
    (name) => /^\d+$/.test(name) && name !== String(process.pid),
  )
  for (const pid of processes.slice(0, MAX_PROCESSES)) {
    if (!(await hasOpen(pid, device))) continue
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'a program')
    return `${name.trim()} (process ${pid})`
  }
  return null
}

/** Settings of a serial line; both sides must use equal settings. */
interface SerialLine {
  /** Prefer a path in /dev/serial/by-id/, because it does not depend on the USB socket. */
  readonly path: string
  /** Bits per second. */
  readonly baudRate: number
  readonly dataBits: 7 | 8
  readonly parity: 'none' | 'even' | 'odd'
  readonly stopBits: 1 | 2
}

const MAX_UNSENT_BYTES = 65_536
const STABLE_NAMES = '/dev/serial/by-id'

/** Stable names of this machine's serial ports; empty if there are none. */
async function serialPorts(): Promise<string[]> {
  const names = await readdir(STABLE_NAMES).catch(() => [])
  return names.sort().map((name) => `${STABLE_NAMES}/${name}`)
}

async function explain(path: string, error: Error): Promise<LinkFault> {
  const text = error.message
  if (/cannot lock port|resource busy|EBUSY|temporarily unavailable/i.test(text)) {
    const owner = await portOwner(path)
    const fix = owner ? `stop ${owner}` : `stop the other program (sudo fuser -v ${path} names it)`
    return new LinkFault('busy', `${path}: in use by another program; ${fix}`, { cause: error })
  }
  if (/permission denied|EACCES|EPERM/i.test(text)) {
    const fix = 'add the user to the group that owns the port (sudo usermod -aG dialout $USER) and log in again'
    return new LinkFault('forbidden', `${path}: no permission; ${fix}`, { cause: error })
  }
  if (/no such file|ENOENT|no such device|ENODEV|ENXIO/i.test(text)) {
    const ports = await serialPorts()
    const fix = ports.length > 0 ? `ports here: ${ports.join(', ')}` : 'no serial adapter is plugged in'
    return new LinkFault('missing', `${path}: not there; ${fix}`, { cause: error })
  }
  return new LinkFault('unsupported', `${path}: ${text}`, { cause: error })
}

// Loads the native add-on on first use, because a machine with only network devices does not need it.
async function loadSerialPort(): Promise<typeof SerialPort> {
  try {
    return (await import('serialport')).SerialPort
  } catch (error) {
    const fix = 'run `npm rebuild @serialport/bindings-cpp`, or use a serial device server by TCP'
    throw new LinkFault('unsupported', `serial ports cannot be used: the add-on "serialport" does not load; ${fix}`, {
      cause: error,
    })
  }
}

/**
 * Opens a serial port exclusively. `hupcl: false` leaves DTR and RTS unchanged when the port closes, because many
 * adapters reset the device when these lines fall.
 */
export async function openSerial(line: SerialLine, signal: AbortSignal): Promise<ByteLink> {
  const Port = await loadSerialPort()
  if (signal.aborted) throw signal.reason as Error
  const port = new Port({ ...line, autoOpen: false, lock: true, hupcl: false, endOnClose: true, highWaterMark: 16_384 })
  const failure = await new Promise<Error | null>((resolve) => port.open((error) => resolve(error ?? null)))
  if (failure) throw await explain(line.path, failure)
  endOnHangup(port)
  const link = portLink(port, line.path)
  if (signal.aborted) {
    await link.close()
    throw signal.reason as Error
  }
  return link
}

function portLink(port: SerialPort, path: string): ByteLink {
  let closed = false
  const lost = () => new LinkFault('lost', `${path}: the port is gone; is the plug in?`)
  port.on('error', () => {})

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of port) yield chunk as Uint8Array
    } catch (error) {
      if (closed) return
      throw new LinkFault('lost', lost().message, { cause: error })
    }
    if (!closed) throw lost()
  }

  return {
    bytes: { [Symbol.asyncIterator]: read },
    write: (bytes, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error)
        if (!port.isOpen) return reject(lost())
        if (port.writableLength > MAX_UNSENT_BYTES)
          return reject(new LinkFault('lost', `${path}: the port takes no more bytes`))
        const finish = (act: () => void) => {
          signal.removeEventListener('abort', onAbort)
          port.removeListener('close', onClose)
          act()
        }
        const onAbort = () => finish(() => reject(signal.reason as Error))
        const onClose = () => finish(() => reject(lost()))
        signal.addEventListener('abort', onAbort, { once: true })
        // serialport may report a failed write only by `close`, without the callback.
        port.once('close', onClose)
        port.write(Buffer.from(bytes), (error) => finish(() => (error ? reject(lost()) : resolve())))
      }),
    close: () =>
      new Promise((resolve) => {
        closed = true
        if (!port.isOpen) return resolve()
        port.close(() => resolve())
      }),
  }
}
