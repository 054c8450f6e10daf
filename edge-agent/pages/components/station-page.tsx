import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice, PageStatus } from '../model/wire.ts'
import { LONGEST_SCAN } from '../model/typed-burst.ts'
import { deviceTypeTexts, textsOf } from '../texts/catalogue.ts'
import type { Texts } from '../texts/texts.ts'
import { Frame, type FrameProps } from './frame.tsx'
import { Header } from './header.tsx'
import { OperatorBar, SignIn } from './operator.tsx'
import { Stage, type StageView } from './stage.tsx'

export interface StationPageProps {
  texts: Texts
  status: PageStatus
  device: PageDevice
  nowMs: number
  operator: string | null
  script?: FrameProps['script']
  view: StageView
}

/** Where staff, or customers themselves, scan a receipt and see whether the tag comes off. */
export function StationPage({ texts, status, device, nowMs, operator, script, view }: StationPageProps) {
  const title = deviceTitle(device, texts)
  return (
    <Frame title={`${title} · untag`} texts={texts} kind="station" deviceId={device.deviceId} script={script}>
      <Header title={title} deviceId={device.deviceId} status={status} texts={texts} nowMs={nowMs} />
      <main>
        <Stage view={view} prompt={deviceTypeTexts(texts, device.deviceType)} texts={texts} />
        {/* Read out once per result; the stage itself is silent, or going back to idle would be news. */}
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
        <OtherLanguage texts={texts} deviceId={device.deviceId} />
      </footer>
      <SignIn texts={texts} />
    </Frame>
  )
}

function OtherLanguage({ texts, deviceId }: { texts: Texts; deviceId: string }) {
  const other = textsOf(texts.language === 'de' ? 'en' : 'de')
  const query = new URLSearchParams({ device: deviceId, lang: other.language })
  return (
    <a class="language" href={`/station?${query}`} lang={other.language} hreflang={other.language}>
      {other.languageName}
    </a>
  )
}
