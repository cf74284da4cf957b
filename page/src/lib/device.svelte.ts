/** How wide the device is. Drawings have fewer units across on a phone, so that letters stay readable. */

const phone = window.matchMedia('(max-width: 560px)')

class Device {
  narrow = $state(phone.matches)

  constructor() {
    phone.addEventListener('change', (event) => (this.narrow = event.matches))
  }
}

export const device = new Device()
