import { LONGEST_SCAN } from '../model/typed-burst.ts'
import { deviceTypeTexts } from '../texts/catalogue.ts'
import { LanguageSwitch, ScreenButtons } from './frame.tsx'
import { LanePage, type LanePageProps } from './lane-page.tsx'
import { OperatorBar, Picture } from './operator.tsx'
import { againText, type ResultView } from '../model/result-view.ts'
import type { DeviceTypeTexts, Texts } from '../texts/texts.ts'
import { ReceiptIcon, ToneIcons } from './icons.tsx'

type StageView = { kind: 'idle'; last: string } | { kind: 'busy' } | { kind: 'result'; result: ResultView }

const EMPTY: ResultView = {
  tone: 'note',
  headline: '',
  product: '',
  picture: '',
  left: '',
  next: '',
  shorterNext: [],
  message: '',
  advice: '',
  again: null,
  seconds: 0,
}

/**
 * The middle of the station page: a prompt or a result. All slots are always present. The page's script fills the slots
 * and selects the visible part.
 */
function Stage({ view, prompt, texts }: { view: StageView; prompt: DeviceTypeTexts; texts: Texts }) {
  const result = view.kind === 'result' ? view.result : EMPTY
  const again = againText(result.again, texts)
  return (
    <section class="stage" data-slot="stage" data-view={view.kind} data-tone={result.tone} aria-labelledby="what">
      <div class="idle part">
        <ReceiptIcon />
        <h2 id="what" data-slot="prompt">
          {prompt.prompt}
        </h2>
        <p class="message" data-slot="hint">
          {prompt.hint}
        </p>
        <p class="last" data-slot="last">
          {view.kind === 'idle' ? view.last : ''}
        </p>
      </div>
      <div class="busy part">
        <p class="headline">{texts.busy}</p>
      </div>
      <div class="result part">
        <div class="signs">
          <ToneIcons />
          <Picture name={result.product} hash={result.picture} />
        </div>
        <div class="words">
          <p class="headline" data-slot="headline">
            {result.headline}
          </p>
          <p class="product" data-slot="product" hidden={result.product === ''}>
            {result.product}
          </p>
          <p class="left" data-slot="left" hidden={result.left === ''}>
            {result.left}
          </p>
          <p class="message" data-slot="next" hidden={result.next === ''}>
            {result.next}
          </p>
          <p class="message" data-slot="message" hidden={result.message === ''}>
            {result.message}
          </p>
          <p class="advice" data-slot="advice" hidden={result.advice === ''}>
            {result.advice}
          </p>
        </div>
        <div class="actions">
          {/* The script shows this button only if the page can send the scan again. */}
          <button type="button" class="main" data-slot="again" hidden>
            {again}
          </button>
          <button type="button" data-slot="done">
            {texts.done}
          </button>
        </div>
      </div>
    </section>
  )
}

interface StationPageProps extends LanePageProps {
  view: StageView
}

/** Page on which staff or customers scan a receipt and see the result of the release. */
export function StationPage(props: StationPageProps) {
  const { localization, device, operator, hasSounds, view } = props
  const { texts } = localization
  return (
    <LanePage kind="station" page={props}>
      <main>
        <Stage view={view} prompt={deviceTypeTexts(texts, device.deviceType)} texts={texts} />
        {/* Screen readers read results here, and not from the stage: the return of the stage to idle is no result. */}
        <p class="aloud" role="status" aria-live="assertive" aria-atomic="true" data-slot="aloud" />
      </main>
      <footer>
        <form class="typed" data-slot="typed" method="post">
          <label for="code">{texts.typeCode}</label>
          <div class="row">
            <input
              id="code"
              data-slot="code"
              maxlength={LONGEST_SCAN}
              autocomplete="off"
              autocapitalize="characters"
              autocorrect="off"
              spellcheck={false}
              enterkeyhint="send"
            />
            <button type="submit">{texts.check}</button>
          </div>
        </form>
        <OperatorBar name={operator} texts={texts} />
        <ScreenButtons texts={texts} hasSounds={hasSounds} />
        <LanguageSwitch other={localization.other} />
      </footer>
    </LanePage>
  )
}
