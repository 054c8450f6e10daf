import { existsSync, readFileSync } from 'node:fs'
import { readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { replaceFile } from '../replace-file.ts'

/** Mode of the file. Only its owner may read it, because it may contain passwords of readers. */
const FILE_MODE = 0o600

/**
 * Writes the configuration file of the demonstration's agent: the simulated devices, then the devices that the set-up
 * page added before. The simulated devices have new ports at each start. Throws if the file or its result is invalid.
 */
export function demoConfig(file: string, simulated: AgentConfig): AgentConfig {
  const before = existsSync(file) ? valid(file, readFileSync(file, 'utf8')) : simulated
  const ids = new Set(simulated.devices.map(({ deviceId }) => deviceId))
  const added = before.devices.filter(({ deviceId }) => !ids.has(deviceId))
  const text = `${JSON.stringify({ ...before, devices: [...simulated.devices, ...added] }, null, 2)}\n`
  const config = valid(file, text)
  replaceFile(file, text, FILE_MODE)
  return config
}

function valid(file: string, text: string): AgentConfig {
  const checked = readConfig(text)
  if (checked.ok) return checked.config
  throw new Error(
    [`${file} has a fault. Correct the file, or delete it to remove the devices that were added:`]
      .concat(checked.faults.map((fault) => `  ${fault}`))
      .join('\n'),
  )
}
