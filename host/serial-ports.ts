import { accessSync, constants, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { UNNAMED_DEVICE } from '../edge-agent/setup/config-file.ts'

/** An attached serial port with a draft configuration entry. */
export interface FoundSerial {
  /** Stable path, for `link.serial`. */
  readonly path: string
  /** Vendor and product from the USB descriptor; missing if the descriptor has none. */
  readonly vendor?: string
  readonly product?: string
  /** USB ids `vendor:product` in hex. */
  readonly usbId?: string
  /** Instruction that gives this user access; missing if the user may open the port. */
  readonly fix?: string
  /** Draft entry for `devices` of the configuration. */
  readonly suggestion: Record<string, unknown>
}

interface SerialPaths {
  /** Default /dev/serial/by-id. */
  readonly names?: string
  /** Default /sys/class/tty. */
  readonly ttys?: string
  /** Default /etc/group. */
  readonly groups?: string
}

const MOST_PORTS = 64

/** USB vendor ids of makers of code scanners: Honeywell, Zebra (Symbol), Datalogic, Newland, Opticon. */
const SCANNER_MAKERS: ReadonlySet<string> = new Set(['0c2e', '05e0', '05f9', '1eab', '065a'])

function firstLine(file: string): string | undefined {
  try {
    const text = readFileSync(file, 'utf8').split('\n')[0]?.trim()
    return text === '' ? undefined : text?.slice(0, 128)
  } catch {
    return undefined
  }
}

/** Folder of the USB device above a tty: the first parent with a vendor id. */
function usbFolder(tty: string): string | undefined {
  try {
    let folder = realpathSync(join(tty, 'device'))
    for (let up = 0; up < 6; up++, folder = dirname(folder)) {
      if (firstLine(join(folder, 'idVendor')) !== undefined) return folder
    }
  } catch {
    // The port is not a USB port, or was detached meanwhile.
  }
  return undefined
}

function groupName(gid: number, groups: string): string {
  try {
    const line = readFileSync(groups, 'utf8')
      .split('\n')
      .find((each) => each.split(':')[2] === String(gid))
    return line?.split(':')[0] ?? String(gid)
  } catch {
    return String(gid)
  }
}

function permissionFix(port: string, groups: string): string | undefined {
  try {
    accessSync(port, constants.R_OK | constants.W_OK)
    return undefined
  } catch {
    try {
      const group = groupName(statSync(port).gid, groups)
      return `this user may not open it: run sudo usermod -aG ${group} $USER and log in again`
    } catch {
      return 'it was detached: attach it again'
    }
  }
}

function suggest(path: string, usbId: string | undefined): Record<string, unknown> {
  const link = { serial: path, baudRate: 9_600 }
  const isScanner = SCANNER_MAKERS.has(usbId?.slice(0, 4) ?? '')
  return isScanner ? { deviceId: UNNAMED_DEVICE, driver: 'scanner', link, feeds: UNNAMED_DEVICE } : boardEntry(link)
}

/** Draft configuration entry for a relay board that releases. */
export function boardEntry(link: object): Record<string, unknown> {
  return { deviceId: UNNAMED_DEVICE, driver: 'modbus', link, unit: 1, output: 0, confirmInput: 0, pulseMs: 200 }
}

/** Lists at most 64 serial ports with stable names. Returns an empty list on errors. */
export function findSerialPorts({
  names = '/dev/serial/by-id',
  ttys = '/sys/class/tty',
  groups = '/etc/group',
}: SerialPaths = {}): FoundSerial[] {
  let entries: string[]
  try {
    entries = readdirSync(names).toSorted().slice(0, MOST_PORTS)
  } catch {
    return []
  }
  return entries.flatMap((name) => {
    const path = join(names, name)
    let port: string
    try {
      port = realpathSync(path)
    } catch {
      return []
    }
    const usb = usbFolder(join(ttys, basename(port)))
    const [vendor, product] = usb ? [firstLine(join(usb, 'manufacturer')), firstLine(join(usb, 'product'))] : []
    const usbId = usb && `${firstLine(join(usb, 'idVendor'))}:${firstLine(join(usb, 'idProduct'))}`
    const fix = permissionFix(port, groups)
    const optional = {
      ...(vendor && { vendor }),
      ...(product && { product }),
      ...(usbId && { usbId }),
      ...(fix && { fix }),
    }
    return [{ path, ...optional, suggestion: suggest(path, usbId) }]
  })
}
