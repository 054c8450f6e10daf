import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { storedBackups } from '../../host/backup/retention.ts'
import { fault, type Finding } from './finding.ts'

const MIB = 1_048_576
const HOUR_MS = 3_600_000
/** A daily backup that is older has failed: the limit of the metrics. */
const BACKUP_LIMIT_MS = 26 * HOUR_MS

/** Checks that this user can write to the data folder, and how much space its disk has left. */
export async function checkFolder(
  data: string,
  { minFreeMb, freeBytes }: { minFreeMb: number; freeBytes(folder: string): Promise<number> },
): Promise<Finding[]> {
  const what = 'data folder'
  try {
    // The check does not create the folder. If it is missing, the check tests the nearest existing parent.
    let there = resolve(data)
    while (!existsSync(there)) there = dirname(there)
    if (!statSync(there).isDirectory())
      return [{ what, state: 'wrong', detail: `${there} is a file: choose another folder with --data` }]
    accessSync(there, constants.W_OK)
    const freeMb = Math.floor((await freeBytes(there)) / MIB)
    if (freeMb < minFreeMb)
      return [
        fault(
          'free space',
          'disk_low',
          `${freeMb} MiB are free on the disk of ${data}, fewer than ${minFreeMb}: free space, or the agent soon releases nothing`,
        ),
      ]
    return [{ what, state: 'ok', detail: `${data} is writable, with ${freeMb} MiB free` }]
  } catch {
    return [
      {
        what,
        state: 'wrong',
        detail: `this user cannot write to ${data}: change its owner, or choose another folder with --data`,
      },
    ]
  }
}

/** Checks the age of the newest complete backup in this folder. */
export function checkBackups(folder: string, nowMs: number): Finding {
  const newest = storedBackups(folder).find(({ isComplete }) => isComplete)
  if (!newest)
    return fault('backups', 'backup_old', `${folder} has no complete backup: make one with untag backup --to ${folder}`)
  const hours = Math.round((nowMs - newest.madeMs) / HOUR_MS)
  return nowMs - newest.madeMs > BACKUP_LIMIT_MS
    ? fault(
        'backups',
        'backup_old',
        `the newest backup in ${folder} is ${hours} hours old: read the log of untag backup, and make one now`,
      )
    : { what: 'backups', state: 'ok', detail: `${newest.name} is ${hours} hours old` }
}
