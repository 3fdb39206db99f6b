/** Waits for the signal at the place named by `CUT_OFF`, which is printed first. */
export async function waitsAt(place: string): Promise<void> {
  if (process.env['CUT_OFF'] !== place) return;
  console.log(`WAITING AT ${place}`);
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}

export default (): Promise<void> => waitsAt(process.env['CUT_OFF']!);
