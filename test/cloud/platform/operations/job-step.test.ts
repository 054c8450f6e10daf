import { expect, it } from 'vitest'
import { runJobStep } from '../../../../cloud/platform/operations/job-steps.ts'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

const services = { platform: virtualPlatform() } as unknown as Services

/** A database that needs no turn of the event loop. `attempts`: how often it runs each transaction. */
const databaseOf = (attempts: number) =>
  ({
    async write(work: (db: object) => Promise<unknown>) {
      for (let n = 1; n < attempts; n++) await work({})
      return work({})
    },
  }) as unknown as Database

it('a step of a job lets requests run before the next step', async () => {
  const seen: string[] = []
  for (let n = 1; n <= 3; n++) {
    setImmediate(() => seen.push(`request ${n}`))
    await runJobStep({ database: databaseOf(1), services, holder: 'ten_1' }, async () => void seen.push(`step ${n}`))
  }
  expect(seen).toEqual(['step 1', 'request 1', 'step 2', 'request 2', 'step 3', 'request 3'])
})

it('a step that runs again after a conflict announces only its last attempt', async () => {
  let attempts = 0
  const announced: number[] = []
  await runJobStep({ database: databaseOf(3), services, holder: 'ten_1' }, async (call) => {
    const attempt = ++attempts
    call.afterCommit(() => void announced.push(attempt))
  })
  expect(announced).toEqual([3])
})
