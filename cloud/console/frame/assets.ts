import { createHash } from 'node:crypto'
import type { Language } from '../../../policy/page-language.ts'
import {
  ICON,
  staticDocument,
  type StaticDocument,
  packageFile,
  ownScript,
} from '../../service/http/static-document.ts'
import { STYLE } from '../style/style.ts'
import { consoleTexts } from '../texts/catalogue.ts'

const SCRIPT = 'text/javascript; charset=utf-8'

/** Stylesheet, scripts and mark of the console. */
export interface ConsoleAssets {
  /** Address of a file. It contains a hash of all files, so that browsers may store them for ever. */
  href(name: AssetName): string
  answer(build: string, name: string): StaticDocument | undefined
  /** The service worker that shows notices in a language. Its address is fixed, and it may not be stored for ever. */
  worker(language: Language): StaticDocument
}

const NAMES = [
  'console.css',
  'htmx.js',
  'sse.js',
  'console.js',
  'typed.js',
  'connection.js',
  'alarms.js',
  'notices.js',
  'passkeys.js',
  'mark.svg',
] as const
type AssetName = (typeof NAMES)[number]

let assets: ConsoleAssets | undefined

/** The files in memory. A process reads them once. */
export function consoleAssets(): ConsoleAssets {
  return (assets ??= readConsoleAssets())
}

function readConsoleAssets(): ConsoleAssets {
  const texts: Record<AssetName, readonly [text: string, type: string]> = {
    'console.css': [STYLE, 'text/css; charset=utf-8'],
    'htmx.js': [packageFile('htmx.org', 'htmx.min.js'), SCRIPT],
    'sse.js': [packageFile('htmx-ext-sse', 'sse.min.js'), SCRIPT],
    'console.js': [ownScript('console/browser/console.js'), SCRIPT],
    'typed.js': [ownScript('console/browser/typed.js'), SCRIPT],
    'connection.js': [ownScript('service/http/browser/connection.js'), SCRIPT],
    'alarms.js': [ownScript('console/browser/alarms.js'), SCRIPT],
    'notices.js': [ownScript('console/browser/notices.js'), SCRIPT],
    'passkeys.js': [ownScript('console/browser/passkeys.js'), SCRIPT],
    'mark.svg': [ICON, 'image/svg+xml'],
  }
  const hash = createHash('sha256')
  for (const name of NAMES) hash.update(name).update('\0').update(texts[name][0]).update('\0')
  const build = hash.digest('hex').slice(0, 16)
  const forEver = { 'cache-control': 'public, max-age=31536000, immutable' }
  const documents = new Map<string, StaticDocument>(
    NAMES.map((name) => [name, staticDocument(texts[name][0], texts[name][1], forEver)]),
  )
  const workers = { en: workerIn('en'), de: workerIn('de') }
  return {
    href: (name) => `/console/assets/${build}/${name}`,
    answer: (asked, name) => (asked === build ? documents.get(name) : undefined),
    worker: (language) => workers[language],
  }
}

/** The service worker with its texts. */
function workerIn(language: Language): StaticDocument {
  const { exceptionTitles, alarms } = consoleTexts(language)
  const texts = { titles: { ...exceptionTitles, help_at_alarm: alarms.helpNotice }, other: alarms.otherNotice }
  return staticDocument(`const TEXTS = ${JSON.stringify(texts)};\n${ownScript('console/browser/worker.js')}`, SCRIPT)
}
