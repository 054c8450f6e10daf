import { randomUUID } from 'node:crypto'
import { readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findTool, tryTool } from '../verification/tools.ts'

/** Path of libfaketime, as Debian installs it. */
const LIBRARY =
  process.platform === 'linux'
    ? findTool(...readdirSync('/usr/lib').map((folder) => join('/usr/lib', folder, 'faketime/libfaketimeMT.so.1')))
    : undefined

/** Reason that a process cannot have its own clock on this machine, or null. */
export const NO_FAKETIME =
  LIBRARY !== undefined
    ? null
    : process.platform === 'linux'
      ? 'install the package libfaketime'
      : 'libfaketime is used on Linux only'

/** A process's wall clock, which can be set while it runs. Elapsed time is not affected. */
export interface FakeTime {
  env: NodeJS.ProcessEnv
  /** Sets the clock this many seconds ahead of the real time; negative: behind. */
  set(seconds: number): void
}

export function fakeTime(folder: string, name: string): FakeTime {
  const file = join(folder, `${name}.time`)
  const time: FakeTime = {
    env: {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set(seconds) {
      // Written atomically, because the process reads the file at every clock access.
      writeFileSync(`${file}.new`, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`)
      renameSync(`${file}.new`, file)
    },
  }
  time.set(0)
  return time
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id'
const rebooted = (file: string) => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `mount --bind '${file}' ${BOOT_ID} && exec "$@"`,
  'sh',
]

/** Command prefix that starts a process with a new boot id, as after a reboot. */
export function newBoot(folder: string): readonly string[] {
  const file = join(folder, 'boot_id')
  writeFileSync(file, `${randomUUID()}\n`)
  return rebooted(file)
}

function canReboot(): boolean {
  if (process.platform !== 'linux') return false
  const [command = '', ...rest] = rebooted('/proc/sys/kernel/random/uuid')
  return tryTool(command, ...rest, 'true').status === 0
}

/** Reason that this machine cannot simulate a reboot for a process, or null. */
export const NO_REBOOT = canReboot() ? null : 'no permission for mounts of our own: run as root'
