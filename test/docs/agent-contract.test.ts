import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { AGENT_API_VERSION, describeAgentApi } from '../../edge-agent/http/openapi.ts'
import { ROOT } from '../house/sources.ts'
import { breakingChanges, undeclaredChanges, unnamedAdditions, type ContractDocument } from './breaking-changes.ts'
import { readableJson } from './contract-page.ts'

const FILE = 'docs/reference/agent-openapi.json'
const UPDATE = 'npx vitest run test/docs/agent-contract.test.ts -u'
const committed = () => JSON.parse(readFileSync(join(ROOT, FILE), 'utf8')) as ContractDocument
const current = JSON.parse(JSON.stringify(describeAgentApi())) as ContractDocument & { info: { version: string } }
/** Removes the events, because the agent sends no webhooks. */
const withoutEvents = (document: ContractDocument): ContractDocument => ({ ...document, 'x-webhooks': {} })

describe(FILE, () => {
  // A single test, so that -u writes the file only if every breaking change is declared.
  it('equals the document generated from the code, and CHANGELOG.md declares changes that break callers', async () => {
    expect(committed, `restore the file first: git checkout ${FILE}`).not.toThrow()
    const [before, after] = [withoutEvents(committed()), withoutEvents(current)]
    const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
    expect(
      undeclaredChanges(breakingChanges(before, after), changelog),
      `These changes break callers. Undo them, or add each line to the unreleased section of CHANGELOG.md (text may follow it), then run: ${UPDATE}`,
    ).toEqual([])
    expect(
      unnamedAdditions(before, after, changelog),
      'The unreleased section of CHANGELOG.md needs a line that names these operations, each in backticks',
    ).toEqual([])
    await expect(
      `${readableJson(current)}\n`,
      `The API has changed without breaking callers. Write ${FILE} again: ${UPDATE}`,
    ).toMatchFileSnapshot(join(ROOT, FILE))
  })

  it('is valid OpenAPI, has a version and names no host', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone({ ...current }))
    expect([valid, errors ?? []]).toEqual([true, []])
    expect(current.info.version).toBe(AGENT_API_VERSION)
    expect(JSON.stringify(current)).not.toMatch(/localhost|127\.0\.0\.1/)
  })

  it('reports a removed operation, method, field, value and event field as breaking', () => {
    const changed = structuredClone(withoutEvents(current)) as unknown as {
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
    expect(breakingChanges(withoutEvents(current), changed as unknown as ContractDocument)).toEqual([
      '`v1/scan` was removed',
      '`DELETE v1/operator` was removed',
      '`v1/authorize` request `epc` was removed',
      '`v1/authorize` response `outcome` was removed',
      '`Decision` response `outcome` was removed',
      '`v1/events` response `direction` no longer has the value `out`',
    ])
  })
})
