import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { Failure } from '../cloud/platform/foundation/failure.ts'
import { UPLOAD_JOBS } from '../cloud/service/upload-jobs.ts'
import type { UploadRequest, UploadResponse } from './upload-process.ts'

/*
 *     cloud ── one uploaded file at a time ──▶ upload-child
 *           ◀── its products or its picture ──
 *
 * The cloud starts this process with a limit for its memory, and kills it if it takes too long. A file that breaks this
 * process costs only its own request.
 */

async function answer({ job, field }: UploadRequest, bytes: Uint8Array): Promise<UploadResponse> {
  try {
    const found = await UPLOAD_JOBS.get(job)?.()
    if (!found) throw new Error(`there is no job ${job}`)
    return { kind: 'result', result: await found.work(bytes, field) }
  } catch (error) {
    if (error instanceof Failure)
      return { kind: 'failure', code: error.code, message: error.message, extras: error.extras }
    return { kind: 'error', text: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

/** The cloud gets the processor first. If the machine runs out of memory, Linux ends this process before the cloud. */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A sandbox may forbid it.
  }
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Other systems choose for themselves.
  }
}

const send = (response: UploadResponse) => process.send?.(response)

giveWay()
process.on('disconnect', () => process.exit(0))
// The cloud ends this process after its last request.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
const pieces: Uint8Array[] = []
process.on('message', (message: UploadRequest | Uint8Array) => {
  if (message instanceof Uint8Array) pieces.push(message)
  else void answer(message, Buffer.concat(pieces.splice(0))).then(send)
})
send({ kind: 'ready' })
