import type { Problem } from '../texts/texts.ts'
import { Page, type PageContext } from './page.tsx'

/** Error page for browsers, instead of JSON: what happened, and what to do. */
export function ProblemPage({
  reader,
  problem,
  requestId,
}: {
  reader: PageContext
  problem: Problem
  requestId: string | undefined
}) {
  const { texts } = reader
  const { what, todo } = texts.problems[problem]
  return (
    <Page title={what} reader={reader}>
      <h1>{what}</h1>
      <p>{todo}</p>
      {problem === 'needsKey' ? (
        <p>
          <a href="/docs">{texts.apiReference}</a>
        </p>
      ) : null}
      {requestId === undefined ? null : (
        <p class="soft">
          {texts.requestNumber}: <code>{requestId}</code>
        </p>
      )}
    </Page>
  )
}
