import { chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { defaultFolder, runtimeFiles } from '../../bin/commands/edge.ts'
import { temporaryFolder } from '../support/databases.ts'

describe.skipIf(process.platform === 'win32')('files of the runtime folder', () => {
  let root: string
  beforeEach(() => {
    root = temporaryFolder('runtime')
    mkdirSync(root, { recursive: true })
  })

  it('are in a folder of mode 0700 that the first write creates', () => {
    const folder = join(root, 'run/untag')
    const files = runtimeFiles(folder)
    expect(files.read('a')).toBe(undefined)
    expect(existsSync(folder)).toBe(false)
    files.write('a', 'one')
    files.write('a', 'two')
    expect([files.read('a'), statSync(folder).mode & 0o777, statSync(join(folder, 'a')).mode & 0o777]).toEqual([
      'two',
      0o700,
      0o600,
    ])
    // The system may empty the folder while the agent runs.
    rmSync(folder, { recursive: true })
    files.write('a', 'new')
    expect(files.read('a')).toBe('new')
  })

  it('are rejected in a folder that others may write to, and in a linked folder', () => {
    const open = join(root, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    const link = join(root, 'link')
    symlinkSync(open, link)
    for (const folder of [open, link])
      expect(() => runtimeFiles(folder).write('a', 'one')).toThrow('must be a folder of this user')
  })

  it('are not written through a link', () => {
    const target = join(root, 'target')
    mkdirSync(join(root, 'run'), { mode: 0o700 })
    symlinkSync(target, join(root, 'run/a'))
    expect(() => runtimeFiles(join(root, 'run')).write('a', 'one')).toThrow('ELOOP')
    expect(existsSync(target)).toBe(false)
  })

  it('are in the runtime folder of the system by default', () => {
    expect(defaultFolder({ XDG_RUNTIME_DIR: '/run/user/7' })).toBe('/run/user/7/untag')
    expect(defaultFolder({})).toMatch(new RegExp(`untag-${process.getuid?.()}$`))
  })
})
