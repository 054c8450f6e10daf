import {
  DENIAL_TEXTS,
  DETAIL_TEXTS,
  EXCEPTION_TEXTS,
  REASON_TEXTS,
  ROW_TEXTS,
  type CodeText,
} from '../../description/codes.ts'
import { Inline } from './prose.tsx'

type Group = 'reason' | 'detail' | 'row' | 'denial' | 'exception'

const GROUPS: readonly { group: Group; title: string; codes: readonly CodeText[] }[] = [
  { group: 'reason', title: 'Reasons of errors: `reason`', codes: REASON_TEXTS },
  { group: 'detail', title: 'Fields with errors: `details[].code`', codes: DETAIL_TEXTS },
  { group: 'row', title: 'Rows and files of imports, records of pushes: `errors[].code`', codes: ROW_TEXTS },
  { group: 'denial', title: 'Reasons of denials: `reason` of `verifyProtectedItem` and devices', codes: DENIAL_TEXTS },
  {
    group: 'exception',
    title: 'Exceptions: `reason` of `protection.exception.raised`',
    codes: EXCEPTION_TEXTS,
  },
]

/** Element id of a code. It includes the group, because `already_redeemed` is a reason of errors and of denials. */
export function codeId(group: Group, code: string): string {
  return `${group}-${code}`
}

/** Lists every code with its cause and the next step. */
export function CodeLists() {
  return (
    <section>
      <h2 id="codes">Codes</h2>
      {GROUPS.map(({ group, title, codes }) => (
        <>
          <h3 id={`codes-${group}`}>
            <Inline text={title} />
          </h3>
          <ul class="codes">
            {codes.map(({ code, text }) => (
              <li id={codeId(group, code)}>
                <code>{code}</code>{' '}
                <span>
                  <Inline text={text} />
                </span>
              </li>
            ))}
          </ul>
        </>
      ))}
    </section>
  )
}
