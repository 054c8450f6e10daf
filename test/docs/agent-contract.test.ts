import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { breakingChanges, type ContractDocument } from '../../scripts/generate/breaking-changes.ts'
import { agentContractDocument } from '../../scripts/generate/contract-page.ts'
import { AGENT_API_VERSION } from '../../edge-agent/http/openapi.ts'

const FILE = 'docs/reference/agent-openapi.json'
const current = agentContractDocument()

describe(FILE, () => {
  it('is valid OpenAPI, has a version and names no host', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone({ ...current }))
    expect([valid, errors ?? []]).toEqual([true, []])
    expect(current.info.version).toBe(AGENT_API_VERSION)
    expect(JSON.stringify(current)).not.toMatch(/localhost|127\.0\.0\.1/)
  })

  it('reports a removed operation, method, field, value and event field as breaking', () => {
    const changed = structuredClone(current) as unknown as {
      paths: Record<string, Record<string, unknown>>
      components: {
        schemas: Record<
          string,
          {
            properties: Record<string, { enum?: string[] }>
            anyOf: { properties: Record<string, { enum?: string[] }> }[]
          }
        >
      }
    }
    delete changed.paths['/v1/scan']
    delete changed.paths['/v1/operator']?.['delete']
    const { Decision, AuthorizeRequest, AgentEvent } = changed.components.schemas
    delete Decision?.properties['outcome']
    delete AuthorizeRequest?.properties['epc']
    AgentEvent?.anyOf[3]?.properties['direction']?.enum?.pop()
    expect(breakingChanges(current, changed as unknown as ContractDocument)).toEqual([
      '`v1/scan` was removed',
      '`DELETE v1/operator` was removed',
      '`v1/authorize` request `epc` was removed',
      '`v1/authorize` response `outcome` was removed',
      '`Decision` response `outcome` was removed',
      '`v1/events` response `direction` no longer has the value `out`',
    ])
  })
})
