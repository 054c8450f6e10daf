import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** Accessibility violations that axe finds on the page: rule and element of each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(SOURCE)
  const options = { runOnly: RULES, resultTypes: ['violations'] }
  const found = await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)
  const { violations: list } = found as {
    violations: { id: string; nodes: { target: string[]; failureSummary?: string }[] }[]
  }
  return list.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')} ${failureSummary ?? ''}`),
  )
}
