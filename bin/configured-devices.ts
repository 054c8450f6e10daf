import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { capabilitiesOf } from '../device-drivers/registry.ts'
import type { AgentConfig } from '../edge-agent/config.ts'
import { refusedDevice } from '../edge-agent/health/registration.ts'
import { openLedgerFile } from '../edge-agent/ledger/file/ledger-file.ts'
import { openMetadata } from '../edge-agent/ledger/file/metadata.ts'
import type { Identity } from '../edge-agent/identity/identity.ts'
import { storedPolicy } from '../edge-agent/trust/stored-policy.ts'
import type { PolicyClaims } from '../policy/documents/store-documents.ts'
import { counted } from './counted.ts'

export interface RegistrationFinding {
  state: 'ok' | 'note' | 'wrong'
  detail: string
}

/** Compares the configured devices with the last stored policy of the agent in `data`. The agent may run meanwhile. */
export function checkRegistrations(
  { devices }: Pick<AgentConfig, 'devices'>,
  identity: Identity,
  data: string,
): RegistrationFinding[] {
  const registered = devices.filter((device) => capabilitiesOf(device).feeds === undefined)
  if (registered.length === 0) return []
  const policy = lastPolicy(identity, data)
  if (!policy)
    return [{ state: 'note', detail: 'not known yet: start the agent, connect it to the cloud and check again' }]
  const refused = registered.flatMap(({ deviceId }): RegistrationFinding[] => {
    const found = refusedDevice(policy, identity.agentId, deviceId)
    return found ? [{ state: 'wrong', detail: `${deviceId} is ${found.state}: ${found.detail}` }] : []
  })
  if (refused.length > 0) return refused
  return [{ state: 'ok', detail: `${counted(registered.length, 'device')} in store ${identity.storeId}` }]
}

function lastPolicy(identity: Identity, data: string): PolicyClaims | undefined {
  const file = join(data, 'ledger.db')
  // `openLedgerFile` would create a missing file.
  if (!existsSync(file)) return undefined
  const db = openLedgerFile(file)
  try {
    return storedPolicy(identity, openMetadata(db))
  } finally {
    db.close()
  }
}
