import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../bin/commands/edge.ts'
import { findSerialPorts } from '../../host/serial-ports.ts'
import { LinkFault } from '../../device-drivers/transports/byte-link.ts'
import { socketLink } from '../../device-drivers/transports/socket-link.ts'
import { isPrintable } from '../../policy/printable.ts'
import { plainTag, storageAtr } from '../../simulators/devices/nfc-tags.ts'
import { PcscdSimulator } from '../../simulators/devices/pcsc.ts'
import { realPlatform } from '../device-drivers/platform.ts'
import { temporaryFolder } from '../support/databases.ts'
import { EXTENDED } from '../support/extended.ts'
import { runCommand } from '../support/commands.ts'

const ACR = 'ACS ACR1552 1S CL Reader PICC [000123] 00 00'
const TWINS = ['ACS ACR122U PICC Interface 01 00', 'ACS ACR122U PICC Interface 02 00']

describe('untag doctor', () => {
  let folder: string
  const cleanups: (() => void)[] = []
  beforeEach(() => void (folder = temporaryFolder('doctor')))
  afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()))

  async function pcscdAt(path: string, names = [ACR, ...TWINS]): Promise<void> {
    const pcscd = new PcscdSimulator({ platform: realPlatform })
    for (const name of names) pcscd.plug(name)
    if (names.includes(ACR)) pcscd.put(ACR, plainTag(storageAtr(3, 1), '01020304'))
    const server = createServer(
      (socket) =>
        void pcscd.serve(
          socketLink(socket, { address: path, explain: (error) => new LinkFault('lost', error.message) }),
        ),
    )
    await new Promise<void>((resolve) => server.listen(path, resolve))
    cleanups.push(() => server.close())
  }
  const doctor = (socket: string, ...more: string[]) =>
    runCommand(['doctor', '--data', join(folder, 'edge'), '--pcscd-socket', socket, ...more])

  it('lists the NFC readers with a configuration entry for each', async () => {
    const socket = join(folder, 'pcscd.comm')
    await pcscdAt(socket)
    const { stdout } = await doctor(socket)
    expect(stdout).toContain(`✓ NFC reader         ${ACR}, with a card\n`)
    const { stdout: json } = await doctor(socket, '--json')
    const { findings, suggestions } = JSON.parse(json) as {
      findings: { what: string }[]
      suggestions: { for: string; entry: unknown }[]
    }
    expect(findings.filter(({ what }) => what === 'NFC reader')).toHaveLength(3)
    // Two readers of the same kind without serial numbers differ only in the number of PC/SC.
    expect(suggestions.slice(-3)).toEqual([
      {
        for: ACR,
        entry: { deviceId: 'dev_…', driver: 'pcsc', link: { pcsc: 'ACS ACR1552 1S CL Reader PICC [000123]' } },
      },
      ...TWINS.map((name) => ({ for: name, entry: { deviceId: 'dev_…', driver: 'pcsc', link: { pcsc: name } } })),
    ])
  })

  it('escapes the names of attached devices, so that they cannot change the terminal', async () => {
    const socket = join(folder, 'pcscd.comm')
    await pcscdAt(socket, ['Reader\u001b[2J\r✓ all is well'])
    const { stdout } = await doctor(socket)
    expect(stdout).toContain('✓ NFC reader         Reader\\u001b[2J\\u000d✓ all is well')
    expect(stdout.split('\n').filter((line) => !isPrintable(line))).toEqual([])
  })

  it('prints each fault of a configuration on a line of its own', async () => {
    const config = join(folder, 'edge.json')
    writeFileSync(config, JSON.stringify({ devices: [{ deviceId: 'dev_a', driver: 'modbos' }], hots: [] }))
    const { stdout } = await doctor(join(folder, 'none.comm'), '--config', config)
    expect(stdout).toMatch(/\n✗ configuration +\S+ has 2 faults:\n {21} {2}devices\[0\]\.driver[^\n]*\n {21} {2}hots/)
    expect(stdout).not.toContain('\\u000a')
  })

  it('adds a found device to the configuration with the id of --device', EXTENDED, async () => {
    const socket = join(folder, 'pcscd.comm')
    await pcscdAt(socket)
    const { suggestions } = JSON.parse((await doctor(socket, '--json')).stdout) as { suggestions: { for: string }[] }
    const number = String(suggestions.findIndex((each) => each.for === ACR) + 1)
    const config = join(folder, 'edge.json')
    expect(await doctor(socket, '--add', number)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--config'),
    })
    expect(await doctor(socket, '--config', config, '--device', 'dev_a', '--add', '999')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('number'),
    })
    expect(await doctor(socket, '--config', config, '--device', 'dev_a', '--add', number)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(ACR),
    })
    expect(loadConfig(config).devices).toMatchObject([{ deviceId: 'dev_a', driver: 'pcsc' }])
    expect(await doctor(socket, '--config', config, '--device', 'dev_a', '--add', number)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('was not changed'),
    })
  })

  it('names the missing packages if there is no pcscd', EXTENDED, async () => {
    const { stdout } = await doctor(join(folder, 'none.comm'))
    expect(stdout).toMatch(
      process.platform === 'linux'
        ? /· NFC readers .*pcscd is not there; install the packages pcscd and libccid/
        : /· NFC readers .*Linux only/,
    )
  })

  it('finds serial ports by their stable names, with maker, permission and an entry', () => {
    const [names, ttys, dev, usb, groups] = ['by-id', 'ttys', 'dev', 'usb', 'group'].map((name) =>
      join(folder, name),
    ) as [string, string, string, string, string]
    const plug = (tty: string, name: string, files: Record<string, string>, mode: number) => {
      const device = join(usb, tty)
      for (const each of [names, dev, join(device, 'tty'), join(ttys, tty)]) mkdirSync(each, { recursive: true })
      for (const [file, text] of Object.entries(files)) writeFileSync(join(device, file), `${text}\n`)
      writeFileSync(join(dev, tty), '')
      chmodSync(join(dev, tty), mode)
      symlinkSync(join(dev, tty), join(names, name))
      symlinkSync(join(device, 'tty'), join(ttys, tty, 'device'))
    }
    writeFileSync(groups, `root:x:0:\ndialout:x:${process.getgid?.() ?? 0}:\n`)
    plug(
      'ttyUSB0',
      'usb-FTDI_FT232R-if00',
      { idVendor: '0403', idProduct: '6001', manufacturer: 'FTDI', product: 'FT232R USB UART' },
      0o000,
    )
    plug('ttyACM0', 'usb-Honeywell-if00', { idVendor: '0c2e', idProduct: '0b6a' }, 0o660)
    symlinkSync(join(dev, 'gone'), join(names, 'usb-gone'))
    const found = findSerialPorts({ names, ttys, groups })
    const isRoot = process.getuid?.() === 0
    expect(found).toEqual([
      {
        path: join(names, 'usb-FTDI_FT232R-if00'),
        vendor: 'FTDI',
        product: 'FT232R USB UART',
        usbId: '0403:6001',
        ...(isRoot ? {} : { fix: 'this user may not open it: run sudo usermod -aG dialout $USER and log in again' }),
        suggestion: expect.objectContaining({
          driver: 'modbus',
          link: { serial: join(names, 'usb-FTDI_FT232R-if00'), baudRate: 9_600 },
        }),
      },
      {
        path: join(names, 'usb-Honeywell-if00'),
        usbId: '0c2e:0b6a',
        suggestion: expect.objectContaining({ driver: 'scanner' }),
      },
    ])
    expect(findSerialPorts({ names: join(folder, 'none') })).toEqual([])
  })
})
