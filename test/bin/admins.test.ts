import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { PLATFORM_NAME } from '../../cloud/platform/accounts/platform-account.ts'
import { runCommand } from '../support/commands.ts'
import { temporaryFolder } from '../support/databases.ts'

describe('untag admins', () => {
  const data = ['--data', join(temporaryFolder('admins'), 'cloud')]
  const untag = (...args: string[]) => runCommand([...args, ...data])
  const json = async (...args: string[]) =>
    JSON.parse((await untag(...args, '--json')).stdout) as Record<string, unknown>
  const email = 'maria@platform.example'
  beforeAll(() => untag('keys', 'create', '--account', 'demo'))

  it('invites, lists and removes people who run the cloud, and no one else sees them', async () => {
    expect(await untag('admins', 'list')).toMatchObject({ stdout: expect.stringContaining('no administrators') })
    const invite = ['admins', 'invite', '--email', 'Maria@Platform.example', '--public-url', 'https://cloud.example']
    const { stdout, code } = await untag(...invite)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^https:\/\/cloud\.example\/console\/invitations\/untag_ui_[\w-]{43}\n$/),
    ])
    // A second invitation replaces the first.
    const { userId } = await json(...invite)
    const admin = { userId, email, role: 'platform', status: 'invited', sandboxOnly: false }
    expect((await json('admins', 'list'))['admins']).toMatchObject([admin])
    expect((await json('users', 'list', '--account', 'demo'))['users']).toEqual([])
    for (const command of [
      ['users', 'list'],
      ['users', 'invite', '--email', email, '--role', 'owner', '--public-url', 'https://cloud.example'],
      ['keys', 'create'],
    ])
      expect([command, (await untag(...command, '--account', PLATFORM_NAME)).code]).toEqual([command, 1])
    expect(await json('admins', 'remove', '--email', email)).toEqual({ userId, email })
    expect((await json('admins', 'list'))['admins']).toEqual([])
    expect(await untag('admins', 'remove', '--email', email)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('untag admins list shows all users'),
    })
    expect((await untag('verify-audit')).code).toBe(0)
  })

  it('needs an e-mail address', async () => {
    expect(await untag('admins', 'invite')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^--email ADDRESS/),
    })
  })
})
