import { expect, it } from 'vitest'
import { askAgent } from '../../bin/doctor/running-agent.ts'
import type { AgentStatus } from '../../edge-agent/health/agent-status.ts'
import { newStatus } from '../edge-agent/pages/pages-agent.ts'

const findingsOf = async (status: Partial<AgentStatus>) => {
  const found = await askAgent({
    url: 'http://127.0.0.1:8090',
    agentId: newStatus().agentId,
    credential: 'secret',
    data: 'var/edge',
    send: async () => Response.json({ ...newStatus(), ...status }),
  })
  return (found ?? []).filter(({ what }) => what === 'configuration')
}

it('says that a restart is due after a change of the set-up page, also to agents without this field', async () => {
  const [found] = await findingsOf({ isRestartDue: true })
  expect(found).toMatchObject({ state: 'note', detail: expect.stringContaining('restart the agent') as string })
  expect(await findingsOf({})).toEqual([])
  expect(await findingsOf({ isRestartDue: undefined as never })).toEqual([])
})
