import { randomBytes, randomFillSync } from 'node:crypto'
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import type { Clock, Platform, Randomness } from '../policy/platform.ts'

/** The platform of a real process: the only source of time and randomness. */
export function realPlatform(): Platform {
  return {
    clock: realClock(),
    timers: {
      after(ms, task) {
        const timer = setTimeout(task, Math.max(0, ms))
        return () => clearTimeout(timer)
      },
    },
    random: realRandom(),
  }
}

/** Size of the pool of random bytes. A system call for 10 bytes takes as long as a system call for thousands. */
const POOL_BYTES = 4_096
/** Requests of at least this many bytes bypass the pool, because callers may use the bytes as a key. */
const KEY_BYTES = 32

/** The system's randomness. The pool erases bytes as soon as it has returned them. */
function realRandom(): Randomness {
  const pool = new Uint8Array(POOL_BYTES)
  let used = POOL_BYTES
  return {
    bytes(length) {
      if (length >= KEY_BYTES) return randomBytes(length)
      if (used + length > POOL_BYTES) {
        randomFillSync(pool)
        used = 0
      }
      const bytes = pool.slice(used, used + length)
      pool.fill(0, used, used + length)
      used += length
      return bytes
    },
  }
}

/** Interval between checks for a suspended machine, ms. */
const SUSPEND_CHECK_MS = 1_000

function realClock(): Clock {
  uptimeOfMachine ??= openUptime() ?? null
  const uptime = uptimeOfMachine
  const monotonic = () => Number(process.hrtime.bigint() / 1_000n) / 1_000
  // Node's monotonic clock stops while the machine is suspended, but the kernel's uptime continues.
  let offset = uptime ? uptime() - monotonic() : 0
  let checkedAt = monotonic()
  return {
    wall: () => Date.now(),
    elapsed() {
      const now = monotonic()
      if (uptime && now - checkedAt > SUSPEND_CHECK_MS) {
        checkedAt = now
        const asleep = uptime() - now - offset
        if (asleep > SUSPEND_CHECK_MS) offset += asleep
      }
      return now + offset
    },
    bootId: readBootId(),
  }
}

/**
 * Uptime of the machine, shared by all clocks of the process, because the file with the uptime stays open. Null if
 * unsupported.
 */
let uptimeOfMachine: (() => number) | null | undefined

/** Time since boot including suspend, ms (Linux); undefined on other systems. */
function openUptime(): (() => number) | undefined {
  try {
    const fd = openSync('/proc/uptime', 'r')
    const buffer = Buffer.alloc(64)
    const read = () => Number.parseFloat(buffer.toString('latin1', 0, readSync(fd, buffer, 0, 64, 0))) * 1_000
    if (Number.isFinite(read())) return read
    closeSync(fd)
  } catch {
    // On systems other than Linux, untag cannot detect suspend. After a long suspend, the signed time seems to jump.
  }
  return undefined
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Without a boot id, every start is treated as a reboot, which is the safe assumption.
    return randomBytes(16).toString('hex')
  }
}
