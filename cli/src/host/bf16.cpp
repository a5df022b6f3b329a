typedef uint16_t Dense;  // the upper half of a float's bits
// Of numbers that are not too exact.
static Dense stored(double number) {
  const float whole = (float)number;
  uint32_t bits = 0;
  memcpy(&bits, &whole, sizeof bits);
  return (Dense)(bits >> 16);
}
static double number_of(Dense element) {
  const uint32_t bits = (uint32_t)element << 16;
  float whole = 0;
  memcpy(&whole, &bits, sizeof whole);
  return whole;
}
