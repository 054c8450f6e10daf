// Takes the pictures of docs/images from a running demonstration: staff station, exit gate and console, in English.
// Needs Chromium at /usr/bin/chromium.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const root = fileURLToPath(new URL('..', import.meta.url))
const LANE = { width: 1024, height: 640 }
const DESK = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 780 }
const LIMIT_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'untag-screenshots-'))
const ports = ['--port', '0', '--mqtt-port', '0', '--edge-port', '0']
const demonstration = spawn(process.execPath, [join(root, 'bin/untag.js'), 'start', ...ports, '--data', folder], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
const lines = []
const readers = new Set()
createInterface({ input: demonstration.stdout }).on('line', (line) => {
  lines.push(line)
  for (const read of readers) read()
})

/** Resolves with the first printed line after `from` that matches. */
function line(wanted, from = 0) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the demonstration did not print ${wanted}`)), LIMIT_MS)
    const read = () => {
      const found = lines.slice(from).find((each) => wanted.test(each))
      if (found === undefined) return
      clearTimeout(timer)
      readers.delete(read)
      resolve(found)
    }
    readers.add(read)
    read()
  })
}

async function press(key, answer) {
  const from = lines.length
  demonstration.stdin.write(`${key}\n`)
  await line(answer, from)
}

const save = (page, name) => page.screenshot({ path: join(root, 'docs/images', `${name}.png`) })
const urlIn = (text) => /http\S+/.exec(text)[0]

let browser
try {
  const ready = JSON.parse((await line(/^ready /)).slice('ready '.length))
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
  const open = (viewport) => browser.newContext({ viewport, locale: 'en-GB' })

  const lanes = await open(LANE)
  const station = await lanes.newPage()
  await station.goto(urlIn(await line(/Staff station/)))
  await station.getByText('Online').first().waitFor()
  const gate = await lanes.newPage()
  await gate.goto(urlIn(await line(/Exit gate/)))
  await gate.getByText('Online').first().waitFor()
  // The result stays on the page for some seconds only.
  demonstration.stdin.write('s\n')
  await station.getByText('Released', { exact: true }).waitFor()
  await save(station, 'station')
  await press('u', /✗ Exit gate/)
  await gate.getByText('not paid').first().waitFor()
  await gate.waitForLoadState('networkidle')
  await save(gate, 'gate')

  for (const [viewport, pages] of [
    [DESK, { '': 'console', '/alarms': 'console-alarms' }],
    [PHONE, { '/alarms': 'console-alarms-phone' }],
  ]) {
    const page = await (await open(viewport)).newPage()
    await page.goto(ready.consoleUrl)
    await page.locator('input[type=email]').fill(ready.consoleUser)
    await page.locator('input[type=password]').fill(ready.consolePassword)
    await page.locator('form:has(input[type=password]) button[type=submit]').click()
    await page
      .getByRole('button', { name: 'Change store' })
      .or(page.locator('summary', { hasText: 'Hafenkante' }))
      .first()
      .click()
    await page.getByRole('dialog').getByText('Hafenkante München').click()
    for (const [path, name] of Object.entries(pages)) {
      await page.goto(`${ready.consoleUrl}${path}`)
      await page.waitForLoadState('load')
      await save(page, name)
    }
  }
} finally {
  await browser?.close()
  demonstration.kill('SIGTERM')
  await new Promise((resolve) => demonstration.once('exit', resolve))
  rmSync(folder, { recursive: true, force: true })
}
