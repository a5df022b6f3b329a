typedef Number Dense;
static Dense stored(double number) { return (Dense)number; }
static double number_of(Dense element) { return element; }
