typedef uint16_t Dense;  // bits of IEEE 754 binary16
// Of 0 and of numbers that are neither too small nor too exact.
static Dense stored(double number) {
  if (number == 0) return 0;
  int exponent = 0;
  const double mantissa = 2 * std::frexp(std::fabs(number), &exponent);
  const unsigned bits = (unsigned)(exponent + 14) << 10 | (unsigned)((mantissa - 1) * 1024);
  return (Dense)(bits | (number < 0 ? 0x8000u : 0));
}
static double number_of(Dense element) {
  const int exponent = element >> 10 & 31, mantissa = element & 1023;
  double size = std::ldexp(exponent ? 1024 + mantissa : mantissa, (exponent ? exponent : 1) - 25);
  if (exponent == 31) size = mantissa ? NAN : INFINITY;
  return element & 0x8000 ? -size : size;
}
