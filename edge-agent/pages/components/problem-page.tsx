import type { Problem } from '../texts/texts.ts'
import { Frame, type Localization } from './frame.tsx'

/** Page for browsers instead of a JSON error: what happened, and what to do. */
export function ProblemPage({ localization, problem }: { localization: Localization; problem: Problem }) {
  const { texts } = localization
  const { what, todo } = texts.problems[problem]
  return (
    <Frame title={`${what} · untag`} localization={localization} kind="list">
      <main>
        <h1>{what}</h1>
        <p>{todo}</p>
        {problem === 'hostNotAllowed' ? null : (
          <p class="row">
            <a class="button" href="/station">
              {texts.chooseDevice}
            </a>
          </p>
        )}
      </main>
    </Frame>
  )
}
