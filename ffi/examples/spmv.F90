! y = A x from Fortran 2003: the whole of the API that most programs need.
!   gfortran spmv.F90 $(pkg-config --libs sparserl) -lcudart -o spmv && ./spmv
! Where there is no CUDA, -DWITHOUT_CUDA in place of -lcudart plans only.
module sparserl
  use iso_c_binding
  implicit none

  integer(c_int32_t), parameter :: SPARSERL_SUCCESS = 0, SPARSERL_I32 = 0, SPARSERL_F64 = 1
  integer(c_int32_t), parameter :: SPARSERL_HOST = 0, SPARSERL_OP_NONE = 0, SPARSERL_TEXT_WHY = 1

  type, bind(C) :: sparserl_csr
    integer(c_int64_t) :: rows = 0, cols = 0, nnz = 0
    type(c_ptr) :: row_offsets = c_null_ptr, column_indices = c_null_ptr, values = c_null_ptr
    ! Fortran counts from 1, and so do its matrices.
    integer(c_int32_t) :: offset_type = SPARSERL_I32, index_type = SPARSERL_I32, value_type = SPARSERL_F64
    integer(c_int32_t) :: index_base = 1, location = SPARSERL_HOST, reserved(3) = 0
  end type

  interface
    integer(c_int32_t) function sparserl_context_create(options, context) bind(C)
      import; type(c_ptr), value :: options; type(c_ptr) :: context
    end function
    integer(c_int32_t) function sparserl_matrix_create(context, csr, matrix) bind(C)
      import; type(c_ptr), value :: context; type(sparserl_csr) :: csr; type(c_ptr) :: matrix
    end function
    integer(c_int32_t) function sparserl_plan_create(context, matrix, options, plan) bind(C)
      import; type(c_ptr), value :: context, matrix, options; type(c_ptr) :: plan
    end function
    integer(c_int32_t) function sparserl_plan_text(plan, op, text, buffer, length, used) bind(C)
      import; type(c_ptr), value :: plan; integer(c_int32_t), value :: op, text
      character(kind=c_char) :: buffer(*); integer(c_size_t), value :: length; integer(c_size_t) :: used
    end function
    integer(c_int32_t) function sparserl_execute(plan, stream, alpha, x, beta, y, z) bind(C)
      import; type(c_ptr), value :: plan, stream, x, y, z; real(c_double) :: alpha, beta
    end function
    integer(c_int32_t) function sparserl_plan_destroy(plan) bind(C)
      import; type(c_ptr), value :: plan
    end function
    integer(c_int32_t) function sparserl_matrix_destroy(matrix) bind(C)
      import; type(c_ptr), value :: matrix
    end function
    integer(c_int32_t) function sparserl_context_destroy(context) bind(C)
      import; type(c_ptr), value :: context
    end function
    type(c_ptr) function sparserl_last_error() bind(C)
      import
    end function
    integer(c_size_t) function strlen(text) bind(C)
      import; type(c_ptr), value :: text
    end function
#ifndef WITHOUT_CUDA
    integer(c_int) function cudaMalloc(pointer, bytes) bind(C, name="cudaMalloc")
      import; type(c_ptr) :: pointer; integer(c_size_t), value :: bytes
    end function
    integer(c_int) function cudaMemcpy(to, from, bytes, kind) bind(C, name="cudaMemcpy")
      import; type(c_ptr), value :: to, from; integer(c_size_t), value :: bytes; integer(c_int), value :: kind
    end function
    integer(c_int) function cudaFree(pointer) bind(C, name="cudaFree")
      import; type(c_ptr), value :: pointer
    end function
#endif
  end interface

contains

  subroutine check(status)
    integer(c_int32_t), intent(in) :: status
    if (status == SPARSERL_SUCCESS) return
    print '(a)', last_error()
    error stop
  end subroutine

  function last_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: error
    integer :: i
    error = sparserl_last_error()
    call c_f_pointer(error, letters, [strlen(error)])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function
end module

program spmv
  use sparserl
  implicit none
  ! 1 0 2
  ! 0 3 0
  ! 4 5 6
  integer(c_int32_t), target :: row_offsets(4) = [1, 3, 4, 7], column_indices(6) = [1, 3, 2, 1, 2, 3]
  real(c_double), target :: values(6) = [1, 2, 3, 4, 5, 6], x(3) = [1, 10, 100], y(3) = 0
  type(sparserl_csr) :: csr
  type(c_ptr) :: context, matrix, plan
  character(kind=c_char) :: why(512)
  integer(c_size_t) :: used
#ifndef WITHOUT_CUDA
  type(c_ptr) :: device_x, device_y
  integer(c_int) :: failed
#endif

  csr%rows = 3; csr%cols = 3; csr%nnz = 6
  csr%row_offsets = c_loc(row_offsets); csr%column_indices = c_loc(column_indices); csr%values = c_loc(values)
  call check(sparserl_context_create(c_null_ptr, context))
  call check(sparserl_matrix_create(context, csr, matrix))
  call check(sparserl_plan_create(context, matrix, c_null_ptr, plan))
  call check(sparserl_plan_text(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, why, size(why, kind=c_size_t), used))
  print '(*(a))', 'kernel: ', why(1:used)
#ifdef WITHOUT_CUDA
  if (sparserl_execute(plan, c_null_ptr, 1d0, c_loc(x), 0d0, c_null_ptr, c_loc(y)) /= SPARSERL_SUCCESS) &
    print '(a)', last_error()
#else
  failed = cudaMalloc(device_x, c_sizeof(x)) + cudaMalloc(device_y, c_sizeof(y))
  failed = failed + cudaMemcpy(device_x, c_loc(x), c_sizeof(x), 1)  ! cudaMemcpyHostToDevice
  call check(sparserl_execute(plan, c_null_ptr, 1d0, device_x, 0d0, c_null_ptr, device_y))
  failed = failed + cudaMemcpy(c_loc(y), device_y, c_sizeof(y), 2)  ! cudaMemcpyDeviceToHost
  failed = failed + cudaFree(device_x) + cudaFree(device_y)
  if (failed /= 0) error stop 'CUDA failed'
  print '(a, 3(1x, f0.0), a)', 'y =', y, ', expected 201. 30. 654.'
#endif
  call check(sparserl_plan_destroy(plan))
  call check(sparserl_matrix_destroy(matrix))
  call check(sparserl_context_destroy(context))
end program
