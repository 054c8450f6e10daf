import type { Texts } from '../texts/texts.ts'

/** Buttons for the screen itself: sound, if the configuration allows sounds, and full screen. */
export function ScreenButtons({ texts, hasSounds }: { texts: Texts; hasSounds: boolean }) {
  return (
    <div class="screen">
      {hasSounds ? (
        <button type="button" data-slot="mute" aria-pressed="false">
          {texts.soundOn}
        </button>
      ) : null}
      <button type="button" data-slot="full-screen" hidden>
        {texts.fullScreen}
      </button>
    </div>
  )
}
