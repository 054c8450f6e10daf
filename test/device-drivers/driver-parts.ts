import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DeviceEntry, DRIVER_NAMES } from '../../device-drivers/registry.ts'
import { readSources, ROOT } from '../house/sources.ts'

const sources = readSources(['device-drivers', 'test'])

/** Names of the drivers in at least one table of the registry. */
export const REGISTERED: readonly string[] = [
  ...new Set([...DRIVER_NAMES, ...DeviceEntry.options.map(({ shape }) => shape.driver.value)]),
]

const SCHEMA = 'docs/reference/edge-config.schema.json'
const read = (path: string) => (existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), 'utf8') : '')

/** One line for each part that the driver lacks. It says what to add, and where. */
export function missingParts(driver: string): string[] {
  const page = `docs/reference/hardware/${driver}.md`
  const ownFile = sources.find(
    ({ path, text }) => path.startsWith('device-drivers/') && text.includes(`name: '${driver}',\n  settings:`),
  )
  const row = sources.find(({ text }) => new RegExp(`^ *describeDriver\\(\\s*'${driver}',`, 'm').test(text))
  const simulators = row?.imports.filter(({ path, isType }) => !isType && path.startsWith('simulators/devices/')) ?? []
  const needs: [boolean, string][] = [
    [
      DeviceEntry.options.some(({ shape }) => shape.driver.value === driver),
      'settings: add its settings schema to `DeviceEntry` in device-drivers/registry.ts',
    ],
    [DRIVER_NAMES.includes(driver), 'driver: add it to `DRIVERS` in device-drivers/registry.ts'],
    [
      ownFile !== undefined && /^ {2}capabilities\b/m.test(ownFile.text),
      `capabilities: add \`capabilities\` to the \`Driver\` in ${ownFile?.path ?? `device-drivers/${driver}/driver.ts`}; the fields are described in device-drivers/kit/driver.ts`,
    ],
    [
      read(page).includes(`"driver": "${driver}"`),
      `page: write ${page} with an example entry that contains \`"driver": "${driver}"\``,
    ],
    [read('README.md').includes(`(${page})`), `page: link ${page} from the table of devices in README.md`],
    [read(SCHEMA).includes(`"const": "${driver}"`), `schema: write ${SCHEMA} with \`npm run generate\``],
    [
      row !== undefined,
      `conformance row: call \`describeDriver('${driver}', …)\` of test/device-drivers/conformance.ts in test/device-drivers/${driver}.test.ts`,
    ],
    [
      simulators.length > 0,
      `simulator: write simulators/devices/${driver}.ts and serve it in the \`device\` of the conformance row`,
    ],
  ]
  return needs.flatMap(([isThere, fix]) => (isThere ? [] : [`${driver} lacks ${fix}`]))
}
