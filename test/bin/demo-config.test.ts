import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configFile } from '../../host/config-file.ts'
import { demoConfig } from '../../bin/commands/start.ts'
import { readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { temporaryFolder } from '../support/databases.ts'

/** The configuration file with which the demonstration's agent takes set-up codes. */
describe('the configuration of the demonstration', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = temporaryFolder('demo-config')
    file = join(folder, 'edge.json')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const board = (deviceId: string, tcp: string) => ({ deviceId, driver: 'modbus', link: { tcp }, output: 0 })
  const simulated = (port: number): AgentConfig => {
    const checked = readConfig(JSON.stringify({ devices: [board('dev_station', `127.0.0.1:${port}`)] }))
    if (!checked.ok) throw new Error(checked.faults.join())
    return checked.config
  }
  const links = (config: AgentConfig) => config.devices.map(({ deviceId, link }) => ({ deviceId, link }))

  it('keeps added devices and settings over a restart, with new ports of the simulated devices', () => {
    expect(links(demoConfig(file, simulated(4001)))).toHaveLength(1)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(configFile(file).add(board('dev_new', '10.0.0.7:502'))).toMatchObject({ ok: true })
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), language: 'de' }))
    const again = demoConfig(file, simulated(4002))
    expect(links(again)).toEqual([
      { deviceId: 'dev_station', link: { tcp: '127.0.0.1:4002' } },
      { deviceId: 'dev_new', link: { tcp: '10.0.0.7:502' } },
    ])
    expect(again.language).toBe('de')
    // The set-up page uses a device without a restart only if the file begins with the devices that run.
    const added = configFile(file).add(board('dev_other', '10.0.0.8:502'))
    expect(added.ok && added.devices.slice(0, 2)).toEqual(again.devices)
  })

  it('names the file and the remedy if a person has damaged it, and changes nothing', () => {
    writeFileSync(file, '{ "devices": [{ "driver": "modbus" }] }')
    const before = readFileSync(file, 'utf8')
    expect(() => demoConfig(file, simulated(4001))).toThrow(
      /edge\.json has a fault.*delete it[^]*devices\[0\]\.deviceId/,
    )
    expect(readFileSync(file, 'utf8')).toBe(before)
  })
})
