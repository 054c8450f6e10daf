import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startCloud } from '../../bin/commands/cloud.ts'
import { demoFile, demoKey } from '../../bin/commands/demo-secrets.ts'
import { rfidStore } from '../../bin/commands/demo-store.ts'
import { fillDemoWeek } from '../../bin/commands/demo-week.ts'
import { newLog } from '../../host/log.ts'
import { readOptions } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { shopper } from '../../simulators/services/shopper.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'

let folder: string
beforeEach(() => (folder = temporaryFolder('week')))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('contains the same waiting tasks and closings shortly after midnight', async () => {
  const midnight = new Date(2026, 10, 24, 0, 20).getTime()
  const platform = { ...realPlatform(), clock: { ...realPlatform().clock, wall: () => midnight } }
  const log = newLog('start', 'error')
  const file = demoFile(folder, secretFiles)
  const settings = { ...readOptions(CLOUD_OPTIONS, [], {}), port: 0, mqttPort: 0, data: join(folder, 'cloud') }
  await fillDemoWeek(settings, file, platform, log)

  const running = await startCloud(settings, platform, log)
  try {
    const key = await demoKey(running, file)
    const api = shopper({
      baseUrl: running.baseUrl,
      key,
      fetch: async (url, init) => running.cloud.app.request(url, init),
    })
    const { storeId } = await rfidStore(api)
    const { tasks } = (await api.call('fetchOpenTasks', { storeId })) as Json
    const waiting = tasks.filter(({ count }: Json) => count > 0).map(({ kind, count }: Json) => [kind, count])
    expect(waiting).toEqual([
      ['ageCheck', 1],
      ['help', 1],
      ['order', 1],
      ['exception', 1],
    ])
    // The key is as new as the demonstration.
    const { keys } = (await api.call('fetchApiKeys', {})) as Json
    expect(keys.map(({ createdAt }: Json) => Date.parse(createdAt))).toEqual([midnight])
    expect(((await api.call('fetchClosings', { storeId })) as Json).closings).toHaveLength(7)
  } finally {
    await running.stop()
  }
})
